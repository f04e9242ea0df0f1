"""`--watch` looks again and again, never two looks at once, and ends as its last look did."""

import contextlib
import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.cli.watch import InPlace, LookBlocks, captured, read_watch, usual_interval_s, watch
from brctl.cli.words import WORDS
from tests.timeouts import TIMEOUT_S
from tests.tui.site import make_site


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Time:
    """A clock that only looks and pauses move; Ctrl-C comes after so many pauses."""

    def __init__(self, looks_s: Sequence[float], pauses: int) -> None:
        self.now_s, self.waited = 0.0, []  # type: float, list[float]
        self._looks, self._left = list(looks_s), pauses

    def look(self) -> int:
        self.now_s += self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        sys.stdout.write(f"at {self.now_s:g}\n")
        return 2

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now_s += seconds
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt

    def seconds(self) -> float:
        return self.now_s


def watched(clock: Time, display: LookBlocks | InPlace, every_s: float = 2.0) -> int:
    return watch(
        clock.look, every_s, display, title="brctl ls", pause=clock.pause, seconds=clock.seconds
    )


@pytest.mark.parametrize(
    ("argv", "every_s", "rest"),
    [
        (["ls", "--watch"], None, ["ls"]),
        (["--watch", "5"], 5.0, []),
        (["ls", "--watch", "1m30s", "-w", "n1"], 90.0, ["ls", "-w", "n1"]),
        (["dx", "--watch=0.5", "demo"], 0.5, ["dx", "demo"]),
        (["dx", "--watch", "demo"], None, ["dx", "demo"]),
        (["run", "--", "top", "--watch"], None, ["run", "--", "top", "--watch"]),
    ],
)
def test_the_flag_takes_seconds_or_a_duration_or_nothing(
    argv: list[str], every_s: float | None, rest: list[str]
) -> None:
    """What follows it is an interval only when it reads as one."""
    assert read_watch(argv) == (every_s, "--" not in argv, rest)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["cp", "a", "b", "--watch"], "`brctl cp a` is done once"),
        (["job", "start", "--watch"], "`brctl job start` is done once"),
        (["fix", "--watch"], "is done once"),
        (["lab", "up", "--watch"], "`brctl lab up` is done once"),
        (["lab", "demo", "--watch", "--fault", "no-such"], "no fault `no-such`"),
        (["ls", "--watch=0"], "between 0.5 s and a day"),
        (["ls", "--watch=soon"], "not a duration"),
    ],
)
def test_what_changes_something_is_never_repeated(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only commands that look can be watched; nothing runs before that is clear."""
    assert run(argv) == 64
    assert words in capsys.readouterr().err


def test_every_watched_command_has_its_own_interval() -> None:
    """A sweep costs more than a look at what is on disk."""
    interval = {
        w: usual_interval_s(w, [], WORDS[w].watched) for w in ("status", "ls", "sweep", "dx")
    }
    assert interval == {"status": 2.0, "ls": 2.0, "sweep": 60.0, "dx": 30.0}
    assert usual_interval_s("job", ["show", "demo"], WORDS["job"].watched) == 5.0


def test_piped_looks_are_blocks_and_the_last_ones_code_is_kept() -> None:
    """No escape goes into a file; Ctrl-C ends with what was found."""
    stream, clock = io.StringIO(), Time([0.25], pauses=2)
    assert watched(clock, LookBlocks(stream, titled=True)) == 2
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if not line.startswith("---")] == ["at 0.25", "at 2.25"]
    assert lines[0].endswith("brctl ls  look 1, took 0.2 s, every 2 s")
    assert "\x1b" not in stream.getvalue()
    assert clock.waited == [1.75, 1.75]


def test_documents_follow_each_other_with_nothing_between() -> None:
    """A program that reads a stream of JSON gets nothing else."""
    stream = io.StringIO()
    watched(Time([0.25], pauses=2), LookBlocks(stream, titled=False))
    assert stream.getvalue() == "at 0.25\nat 2.25\n"


def test_a_look_longer_than_the_interval_is_said_and_followed_by_as_long_a_pause() -> None:
    """A slow fleet is not asked without end."""
    stream, clock = io.StringIO(), Time([12.0, 0.5], pauses=2)
    watched(clock, LookBlocks(stream, titled=True))
    assert clock.waited == [12.0, 1.5]
    first = stream.getvalue().splitlines()[0]
    assert first.endswith("took 12.0 s: longer than the 2 s between looks, the next in 12.0 s")


def test_a_terminal_is_drawn_in_place_and_given_back_with_the_last_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other screen is left, the cursor is back, and the last look stays, however long."""
    monkeypatch.setenv("LINES", "3")
    stream = Terminal()

    def long_look() -> int:
        sys.stdout.write("".join(f"line {n}\n" for n in range(9)))
        return 0

    clock = Time([0.0], pauses=1)
    assert watch(long_look, 2.0, InPlace(stream), title="x", pause=clock.pause) == 0
    shown, _, after = stream.getvalue().partition("\x1b[?1049l")
    assert shown.startswith("\x1b[?1049h")
    assert "... 8 more lines" in shown
    assert "line 5" not in shown
    assert after == "".join(f"line {n}\n" for n in range(9))


def test_an_interrupt_before_the_first_answer_is_an_interrupt() -> None:
    """There is no last look whose code it could have."""

    def look() -> int:
        raise KeyboardInterrupt

    assert watch(look, 2.0, LookBlocks(io.StringIO(), titled=True), title="x") == 130


def test_notes_of_a_look_stay_on_stderr_where_that_is_another_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A log of stderr keeps its lines; only one screen for both has one page of both."""

    def look() -> int:
        sys.stdout.write("page\n")
        sys.stderr.write("note\n")
        return 0

    assert captured(look) == (0, "page\n")
    assert capsys.readouterr().err == "note\n"


def test_ls_is_redrawn_on_a_real_terminal_until_ctrl_c(tmp_path: Path) -> None:
    """The program itself: two looks on another screen, then Ctrl-C and the code of `ls`."""
    make_site(tmp_path)
    mine, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "BRCTL_CONFIG": str(tmp_path / "config.yaml")}
    process = subprocess.Popen(
        [sys.executable, "-m", "brctl", "ls", "--watch", "0.5"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environ,
    )  # fmt: skip
    os.close(theirs)
    seen, end = b"", time.monotonic() + TIMEOUT_S
    try:
        while b"look 2" not in seen:
            assert time.monotonic() < end, seen
            if select.select([mine], [], [], 1.0)[0]:
                seen += os.read(mine, 65536)
        process.send_signal(signal.SIGINT)
        # Its end closes the terminal, which reading answers with an error.
        with contextlib.suppress(OSError):
            while chunk := os.read(mine, 65536):
                seen += chunk
        process.wait(TIMEOUT_S)
    finally:
        process.kill()
        os.close(mine)
    assert process.returncode == 0
    assert seen.count(b"\x1b[?1049h") == 1
    assert b"n3" in seen
    assert b"Traceback" not in seen
