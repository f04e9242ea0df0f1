"""A journal loses nothing silently: gaps, altered lines and torn tails show."""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.journal.follow import follow
from brctl.journal.store import (
    EVENTS,
    TORN,
    Journal,
    find_run,
    is_running,
    new_run,
    owning,
    read_journal,
    run_dirs,
)
from brctl.library.durable_files import private_dir
from brctl.model.errors import LockedError, UsageError
from brctl.model.runs.event import EventType

AT = datetime(2026, 7, 5, 12, tzinfo=UTC)


def write(run_dir: Path, count: int) -> None:
    journal = Journal(run_dir)
    for number in range(count):
        journal.append(EventType.NOTE, AT, {"text": f"line {number}"})
    journal.close()


def test_what_is_written_is_read_back_in_order(tmp_path: Path) -> None:
    """Numbers run without gaps over two processes."""
    run_dir = new_run(tmp_path)
    write(run_dir, 2)
    write(run_dir, 2)
    recording = read_journal(run_dir)
    assert [event.seq for event in recording.events] == [0, 1, 2, 3]
    assert recording.damage == ()
    assert not recording.ended


def test_runs_are_numbered_and_private(tmp_path: Path) -> None:
    """Nobody else reads a journal."""
    first, second = new_run(tmp_path), new_run(tmp_path)
    assert [first.name, second.name] == ["R-0001", "R-0002"]
    write(first, 1)
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert stat.S_IMODE((first / EVENTS).stat().st_mode) == 0o600
    assert run_dirs(tmp_path) == [first, second]
    assert find_run(tmp_path, "latest") == second


@pytest.mark.parametrize("name", ["R-0009", "../R-0001", "R-0001/..", "x"])
def test_a_run_that_does_not_exist_is_a_usage_error(name: str, tmp_path: Path) -> None:
    """Names never leave the runs folder."""
    new_run(tmp_path)
    with pytest.raises(UsageError, match="the newest is R-0001"):
        find_run(tmp_path, name)


def test_a_torn_last_line_is_reported_and_set_aside_when_the_run_goes_on(tmp_path: Path) -> None:
    """A line that was never finished never happened, and is kept for people to see."""
    run_dir = new_run(tmp_path)
    write(run_dir, 2)
    with (run_dir / EVENTS).open("ab") as stream:
        stream.write(b'{"type":"step.res')
    recording = read_journal(run_dir)
    assert len(recording.events) == 2
    assert "never finished (17 bytes)" in recording.damage[0]
    write(run_dir, 1)
    after = read_journal(run_dir)
    assert (len(after.events), after.damage) == (3, ())
    assert (run_dir / TORN).read_bytes() == b'{"type":"step.res\n'


def test_an_altered_line_breaks_the_chain(tmp_path: Path) -> None:
    """Changing the past shows at the next line."""
    run_dir = new_run(tmp_path)
    write(run_dir, 3)
    path = run_dir / EVENTS
    path.write_bytes(path.read_bytes().replace(b"line 1", b"line X"))
    assert read_journal(run_dir).damage == (f"{path}:3: does not follow the line before it",)


def test_a_lost_line_shows_as_a_gap(tmp_path: Path) -> None:
    """A missing number is a lost line."""
    run_dir = new_run(tmp_path)
    write(run_dir, 3)
    path = run_dir / EVENTS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    assert any("number 2 instead of 1" in text for text in read_journal(run_dir).damage)


def test_junk_is_damage_and_not_a_crash(tmp_path: Path) -> None:
    """Whatever stands in the file, reading it gives sentences."""
    run_dir = new_run(tmp_path)
    (run_dir / EVENTS).write_bytes(
        b"[]\n{}\nnot json\n\xff\xfe\n" + json.dumps({"seq": 1}).encode()
    )
    recording = read_journal(run_dir)
    assert recording.events == ()
    assert len(recording.damage) == 5


def test_a_field_cannot_stand_for_a_key_of_the_line(tmp_path: Path) -> None:
    """An event's own fields never overwrite its type, number or time."""
    journal = Journal(new_run(tmp_path))
    with pytest.raises(ValueError, match="'type' is a key of every line"):
        journal.append(EventType.NOTE, AT, {"type": "x"})
    journal.close()


def test_a_run_has_one_owner(tmp_path: Path) -> None:
    """The kernel gives the run back when its process is gone."""
    run_dir = new_run(tmp_path)
    assert not is_running(run_dir)
    with owning(run_dir):
        assert is_running(run_dir)
        with pytest.raises(LockedError), owning(run_dir):
            pass
    assert not is_running(run_dir)


async def test_a_follower_sees_every_line_and_stops_at_the_end(tmp_path: Path) -> None:
    """What was written before and after it came; a half-written line waits until it is whole."""
    run_dir = new_run(tmp_path)
    write(run_dir, 2)
    observed = []
    with owning(run_dir):
        journal = Journal(run_dir)
        async for event in follow(run_dir, poll_s=0.001):
            observed.append(event.type)
            if len(observed) == 2:
                journal.append(EventType.END, AT, {"result": "ok"})
        journal.close()
    assert observed == [EventType.NOTE, EventType.NOTE, EventType.END]


async def test_a_follower_of_a_dead_run_comes_back_without_an_end(tmp_path: Path) -> None:
    """A cut stream is visible: the last line is not `end`."""
    run_dir = new_run(tmp_path)
    write(run_dir, 2)
    observed = [event.type async for event in follow(run_dir, poll_s=0.001)]
    assert observed == [EventType.NOTE, EventType.NOTE]


def test_state_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """And so is every folder that had to be made above them."""
    before = os.umask(0)
    try:
        private_dir(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    for made in ("a", "a/b", "a/b/c"):
        assert (tmp_path / made).stat().st_mode & 0o777 == 0o700
