"""Whatever lies where a file of the site should lie, reading it ends, small and with a sentence."""

import os
import tracemalloc
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest

from brctl.engine.controller.copying import open_payload
from brctl.engine.logs.log_sources import read_blocks
from brctl.inventory.ansible import load_ansible
from brctl.inventory.group_file import load_group_file
from brctl.inventory.hostlist import load_hostlist
from brctl.journal.chain_key import VARIABLE, own_or_new_key
from brctl.library.calendars import CalendarSource, load_calendar
from brctl.library.durable_files import append_line
from brctl.library.foreign import import_nhc
from brctl.library.guards import load_guards
from brctl.library.playbooks import load_playbook, pick_playbook
from brctl.library.shipped import shipped_dir
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import read_beginning
from brctl.model.errors import BrctlError, UsageError
from tests.timeouts import TIMEOUT_S

READERS: Mapping[str, Callable[[Path], object]] = {
    "yaml": load_document,
    "guards": lambda path: load_guards([path]),
    "playbook": load_playbook,
    "host list": load_hostlist,
    "ansible": load_ansible,
    "group file": lambda path: load_group_file(path, "node", "rack"),
    "nhc": lambda path: import_nhc(path, path.parent),
    "cp": lambda path: open_payload(path).__enter__(),
    "log": lambda path: list(read_blocks(path, [])),
}


HELD_BYTES = 129 << 20


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_device_in_the_place_of_a_file_is_refused(name: str, tmp_path: Path) -> None:
    """Through a link, as whoever may write the folder would put it there; some never end."""
    path = tmp_path / "file.yaml"
    path.symlink_to("/dev/zero")
    with pytest.raises(BrctlError, match=r"not a regular file|a device, no log"):
        READERS[name](path)


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"log", "cp"}))
def test_a_file_that_is_far_too_large_is_refused_and_not_held(name: str, tmp_path: Path) -> None:
    """Sparse, so that it costs nobody anything; logs and copies are read in pieces."""
    path = tmp_path / "file.yaml"
    with path.open("wb") as stream:
        stream.truncate(100 << 30)
    tracemalloc.start()
    with pytest.raises(BrctlError, match="larger than"):
        READERS[name](path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HELD_BYTES


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (lambda path: read_beginning(path, 10), "not a regular file"),
        (lambda path: append_line(path, "x"), "No such device or address"),
    ],
    ids=["read", "append"],
)
def test_nobody_waits_for_the_other_end_of_a_pipe(
    use: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    """Opening one blocks until somebody opens its other end, and nobody ever does."""
    os.mkfifo(tmp_path / "pipe")
    said: list[str] = []

    def try_it() -> None:
        try:
            use(tmp_path / "pipe")
        except OSError as exc:
            said.append(str(exc.strerror))

    thread = Thread(target=try_it, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    assert said == [why]


def test_a_pipe_among_a_sites_playbooks_stops_only_its_own_name(tmp_path: Path) -> None:
    """`cordon` waited for ever."""
    (tmp_path / "mine.yaml").symlink_to("/dev/zero")
    dirs = (shipped_dir("playbooks"), tmp_path)
    assert pick_playbook(dirs, "cordon").name == "cordon"
    with pytest.raises(BrctlError, match="not a regular file"):
        pick_playbook(dirs, "mine")


def test_a_calendar_and_a_key_that_are_no_files_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A guard by that calendar stays shut; a journal without its key goes on, as ever."""
    (tmp_path / "zero").symlink_to("/dev/zero")
    sources = {"stop": CalendarSource("stop", "config", file=tmp_path / "zero")}
    found = load_calendar(sources, "stop", datetime(2026, 7, 6, tzinfo=UTC))
    assert "not a regular file" in found.problem
    monkeypatch.setenv(VARIABLE, str(tmp_path / "zero"))
    assert own_or_new_key() is None
    assert "not a regular file" in caplog.text


def test_a_log_that_is_a_pipe_is_read(tmp_path: Path) -> None:
    """`logs classify <(zcat x)` is one."""
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_bytes, args=(b"step 1\n",))
    writer.start()
    assert b"".join(read_blocks(tmp_path / "pipe", [])) == b"step 1\n"
    writer.join()
    with pytest.raises(UsageError, match="a device"):
        list(read_blocks(Path("/dev/null"), []))
