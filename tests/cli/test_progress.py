"""Progress is one line on a terminal that goes away, and nothing at all anywhere else."""

import io
import sys
import time
from collections.abc import Callable

import pytest

from brctl.cli.progress import ProgressLine, progress
from tests.timeouts import TIMEOUT_S


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def quick(stream: Terminal, after_s: float = 0.0) -> ProgressLine:
    return ProgressLine(stream, after_s=after_s, every_s=0.005)


def test_the_line_is_rewritten_in_place_and_taken_away() -> None:
    """It never ends in a newline, fits the terminal, and leaves an empty line behind."""
    stream = Terminal()
    with quick(stream) as line:
        line.tell("reading " + "x" * 500)
        until(lambda: "reading" in stream.getvalue())
    text = stream.getvalue()
    assert text.endswith("\r\x1b[K")
    assert "\n" not in text
    assert max(len(part) for part in text.split("\r")) < 90


def test_work_that_never_yields_is_seen_to_go_on() -> None:
    """A count shows how many of how many, and after the last one what comes then."""
    stream = Terminal()
    with quick(stream) as line:
        count = line.counted(2, "comparing")
        until(lambda: "0/2 nodes answered" in stream.getvalue())
        count(None)
        until(lambda: "1/2 nodes answered" in stream.getvalue())
        count(None)
        until(lambda: "comparing" in stream.getvalue())


def test_what_is_quick_shows_nothing() -> None:
    """A line that flashes up is noise."""
    stream = Terminal()
    with quick(stream, after_s=3600.0) as line:
        line.tell("at once")
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_lines_that_stay_stand_above_the_one_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The changing line is wiped first, so that no rest of it stands beside the other."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with quick(stream) as line:
        line.tell("working")
        until(lambda: "working" in stream.getvalue())
        line.say("done with one")
    assert "\r\x1b[Kdone with one\n" in stream.getvalue()


def test_lines_of_the_answer_never_share_one_with_what_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounds of a search go to stdout while the line stands on stderr of the same terminal."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with quick(terminal) as line:
        line.tell("the next groups")
        until(lambda: "the next groups" in terminal.getvalue())
        line.show("round 1")
    assert "\r\x1b[Kround 1\n" in terminal.getvalue()


@pytest.mark.parametrize("reason", ["pipe", "dumb", "quiet"])
def test_nothing_is_written_where_nobody_watches(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under cron, in a pipe, on a dumb terminal and with -q; lines that stay are still written."""
    stream = io.StringIO() if reason == "pipe" else Terminal()
    monkeypatch.setenv("TERM", "dumb" if reason == "dumb" else "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with progress("working", quiet=reason == "quiet") as line:
        line.counted(3)(None)
        line.say("news")
    assert stream.getvalue() == "news\n"
