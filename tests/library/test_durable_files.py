"""A replaced file is the old one or the new one at every moment, whoever dies or links where."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import brctl
from brctl.engine.controller.trust import add_lines
from brctl.engine.job.stack_store import new_folder
from brctl.library.durable_files import append_line, write_atomic

OLD, NEW = b"old" * 40_000, b"new" * 50_000
CONTENT = {"old": OLD, "new": NEW}
DIES = """\
import os, signal, sys
from pathlib import Path
from brctl.library import durable_files

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

class Half:
    def __init__(self, descriptor, mode):
        self.descriptor = descriptor
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return None
    def write(self, raw):
        os.write(self.descriptor, raw[: len(raw) // 2])
        die()

name, number, path = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
real, calls = getattr(os, name), []

def counted(*args, **kwargs):
    calls.append(args)
    return die() if len(calls) == number else real(*args, **kwargs)

setattr(os, name, Half if name == "fdopen" else counted)
durable_files.write_atomic(path, b"new" * 50_000)
"""


@pytest.mark.parametrize(
    ("call", "number", "left"),
    [
        ("open", 1, "old"),
        ("fdopen", 1, "old"),
        ("fchmod", 1, "old"),
        ("fsync", 1, "old"),
        ("replace", 1, "old"),
        ("open", 2, "new"),
        ("fsync", 2, "new"),
    ],
)
def test_a_writer_killed_at_any_point_leaves_a_whole_file(
    tmp_path: Path, call: str, number: int, left: str
) -> None:
    """Up to the rename the old content, from then on the new one.

    The next writer is not hindered, and what the dead one left is in no listing of the store.
    """
    target = tmp_path / "V-1.json"
    target.write_bytes(OLD)
    done = subprocess.run([sys.executable, "-c", DIES, call, str(number), str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.read_bytes() == CONTENT[left]
    write_atomic(target, b"after")
    assert target.read_bytes() == b"after"
    assert list(tmp_path.glob("*.json")) == [target]


@pytest.mark.parametrize("call", ["fdopen", "fchmod", "fsync", "replace"])
def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A full disk costs the new content only."""

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "state.json"
    target.write_bytes(OLD)
    with monkeypatch.context() as patches:
        patches.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            write_atomic(target, NEW)
    assert target.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_gets_exactly_the_mode_that_was_asked_for(
    tmp_path: Path, umask: int, mode: int
) -> None:
    """Neither the umask nor the file before decides who may read it."""
    target = tmp_path / "file"
    target.touch(mode=0o666)
    before = os.umask(umask)
    try:
        write_atomic(target, "new", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_part_is_never_readable_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the content is whole, only its owner reads it, even when everybody may afterwards."""
    observed: list[int] = []
    real = os.fchmod

    def note(descriptor: int, mode: int) -> None:
        observed.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        real(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", note)
    before = os.umask(0)
    try:
        write_atomic(tmp_path / "file", "new", mode=0o644)
    finally:
        os.umask(before)
    assert observed == [0o600]


def test_a_link_in_the_place_of_the_file_is_replaced_not_followed(tmp_path: Path) -> None:
    """Whoever links a known name to another file gets neither its content nor its loss."""
    victim, target = tmp_path / "victim", tmp_path / "file"
    victim.write_text("mine")
    target.symlink_to(victim)
    write_atomic(target, "new")
    assert (victim.read_text(), target.read_text()) == ("mine", "new")
    assert not target.is_symlink()


def test_a_link_planted_under_the_name_of_the_part_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a guessed name is of no use: the part must be a file that did not exist."""
    victim, planted = tmp_path / "victim", tmp_path / f".file.{b'guess!'.hex()}"
    victim.write_text("mine")
    planted.symlink_to(victim)
    monkeypatch.setattr(os, "urandom", lambda count: b"guess!"[:count])
    with pytest.raises(FileExistsError):
        write_atomic(tmp_path / "file", "new")
    assert victim.read_text() == "mine"
    assert planted.is_symlink()
    assert not (tmp_path / "file").exists()


def test_appended_lines_stand_whole_in_a_private_file(tmp_path: Path) -> None:
    """One write a line, after what is there, readable by its owner only."""
    target = tmp_path / "lines"
    append_line(target, "first")
    append_line(target, "zweite \u00fc")
    assert target.read_text(encoding="utf-8") == "first\nzweite \u00fc\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_line_is_whole_when_the_system_takes_it_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write may take less than it was given; the rest follows."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, raw: real(descriptor, raw[:3]))
    append_line(tmp_path / "lines", "a long line")
    append_line(tmp_path / "lines", "another")
    assert (tmp_path / "lines").read_text() == "a long line\nanother\n"


def test_a_line_that_does_not_fit_leaves_nothing_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that becomes full takes a part of it; what stood before stands, and it is an error."""
    target, real = tmp_path / "lines", os.write
    append_line(target, "first")

    def full(descriptor: int, raw: bytes) -> int:
        if target.stat().st_size > len("first\n"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, raw[:4])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        append_line(target, "second")
    assert target.read_text() == "first\n"


OF_PEOPLE = {
    "library/new_check.py", "library/foreign.py", "engine/controller/copying.py",
    "engine/controller/arriving.py", "cli/commands/cp.py",
}  # fmt: skip
"""They write below a folder that a person names on the command line."""


def test_no_folder_is_made_with_parents_as_open_as_the_umask() -> None:
    """`mkdir(parents=True, mode=0o700)` gives the mode to the last folder only."""
    package = Path(brctl.__file__).parent
    apart = ("lab", "training", "_shipped")
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] not in apart
        and re.search(r"mkdir\([^)]*parents=True|makedirs\(", path.read_text())
    }
    assert found == OF_PEOPLE


def test_folders_of_stacks_dumps_and_host_keys_are_private_whatever_the_umask(
    tmp_path: Path,
) -> None:
    """The folders above them too, when they had to be made."""
    before = os.umask(0)
    try:
        new_folder(tmp_path / "state", "llm", datetime(2026, 7, 5, tzinfo=UTC))
        add_lines(tmp_path / "home/.ssh/known_hosts", ["n1 ssh-ed25519 AAAA"])
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}
    assert len(made) == 6
