"""A full, read-only or closed disk is no bug of ours: 69 with the file's name, for Nagios 3."""

import os
import subprocess
import sys
from errno import ENOSPC
from pathlib import Path

import pytest

from brctl.cli.disk_trouble import disk_trouble
from brctl.library.durable_files import append_line
from tests.fakes.site_files import local_config, write_site

CONFIG = local_config()
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {address: 127.0.0.1}}
"""
MOUNTS = {
    "full": "mount -t tmpfs -o size=4k,mode=0700 tmpfs state && head -c 4k /dev/zero > state/used",
    "read-only": "mount -t tmpfs -o ro,mode=0700 tmpfs state",
}
"""How the state directory's disk is made so, in a mount namespace of its own."""

NOBODY = "exec setpriv --bounding-set=-dac_override,-dac_read_search"
CLOSED = {"no entry": "chmod 0 state", "no writing": "chmod 0500 state"}
"""Modes that keep out even the owner, once it has not root's right to pass them by."""


def brctl(folder: Path, disk: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line where nothing of the state can be written."""
    write_site(folder, CONFIG, INVENTORY)
    (folder / "state").mkdir()
    script = (
        f'{MOUNTS[disk]} && exec "$@"' if disk in MOUNTS else f'{CLOSED[disk]} && {NOBODY} "$@"'
    )
    command = [sys.executable, "-m", "brctl", *words, "--config", "config.yaml", "--no-input"]
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *command],
        cwd=folder, env={**os.environ, "HOME": str(folder)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("disk", MOUNTS)
@pytest.mark.parametrize("words", ["sweep --checks host.memory", "cordon n1 -m fan"])
def test_it_ends_as_unavailable_with_the_file_and_no_traceback(
    disk: str, words: str, tmp_path: Path
) -> None:
    done = brctl(tmp_path, disk, *words.split())
    assert done.returncode == 69, done.stderr
    assert "cannot be written" in done.stderr
    assert "unexpected" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("disk", MOUNTS)
def test_nagios_is_told_unknown_in_one_line(disk: str, tmp_path: Path) -> None:
    done = brctl(tmp_path, disk, "sweep", "--checks", "host.memory", "-o", "nagios")
    assert done.returncode == 3, done.stderr
    (line,) = done.stdout.splitlines()
    assert "UNKNOWN" in line
    assert "cannot be written" in line


@pytest.mark.parametrize("disk", CLOSED)
@pytest.mark.parametrize("words", ["sweep --checks host.memory", "cordon n1 -m fan"])
def test_a_state_directory_of_somebody_else_is_named_with_the_way_out(
    disk: str, words: str, tmp_path: Path
) -> None:
    done = brctl(tmp_path, disk, *words.split())
    (tmp_path / "state").chmod(0o700)
    assert done.returncode == 69, done.stderr
    told = next(line for line in done.stderr.splitlines() if "denied" in line)
    assert f"{tmp_path}/state" in told
    assert "Permission denied for uid 0" in told
    assert "or name another `state_dir`" in done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.parametrize("disk", CLOSED)
def test_nagios_is_told_unknown_of_a_closed_state_directory(disk: str, tmp_path: Path) -> None:
    done = brctl(tmp_path, disk, "sweep", "--checks", "host.memory", "-o", "nagios")
    (tmp_path / "state").chmod(0o700)
    assert done.returncode == 3, done.stderr
    (line,) = done.stdout.splitlines()
    assert "UNKNOWN" in line
    assert "Permission denied" in line


def test_a_line_that_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Half a line would make the next one unreadable too; the error names the file."""
    path = tmp_path / "notes.ndjson"
    script = (
        "import resource, signal, sys; from pathlib import Path;"
        "from brctl.library.durable_files import append_line;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); path = Path(sys.argv[1]);"
        "append_line(path, 'a' * 10); resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16));"
        "append_line(path, 'b' * 10)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert path.read_text() == "a" * 10 + "\n"
    assert str(path) in done.stderr
    append_line(path, "c")
    assert path.read_text().splitlines()[-1] == "c"


def test_other_errors_are_not_taken_for_a_full_disk() -> None:
    """A file that is missing is a mistake of somebody, and must look like one."""
    assert disk_trouble(FileNotFoundError(2, "no such file")) is None
    assert disk_trouble(ValueError("no space left")) is None
    assert disk_trouble(PermissionError(1, "Operation not permitted")) is None
    full = disk_trouble(OSError(ENOSPC, "No space left on device", "/state/x"))
    assert str(full) == "/state/x: cannot be written: No space left on device"
