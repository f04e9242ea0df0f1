"""`--watch [SECONDS]`: one command looked at again and again, until Ctrl-C."""

import contextlib
import io
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import NoReturn, Protocol, TextIO

from brctl.engine.controller.clock import now
from brctl.model.errors import UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.units import describe_duration, parse_duration_s, utc_text

FLAG = "--watch"
LEAST_S, MOST_S = 0.5, 86_400.0
_BARE = re.compile(r"\d+(?:\.\d+)?")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_TERMINATED = 128 + signal.SIGTERM

_OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Another screen, no cursor, and lines that are cut where the terminal ends."""
_CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l"


def read_watch(argv: Sequence[str]) -> tuple[float | None, bool, list[str]]:
    """The seconds after `--watch` (None without), whether it was given, and the other words."""
    rest: list[str] = []
    every_s, found = None, False
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            return every_s, found, [*rest, word, *words]
        flag, inline, value = word.partition("=")
        if flag != FLAG:
            rest.append(word)
            continue
        found = True
        if inline:
            every_s = _seconds(value)
        elif words and (_BARE.fullmatch(words[0]) or _DURATION.fullmatch(words[0])):
            every_s = _seconds(words.pop(0))
    return every_s, found, rest


def _seconds(text: str) -> float:
    try:
        seconds = float(text) if _BARE.fullmatch(text) else parse_duration_s(text)
    except ValueError as exc:
        raise UsageError(f"{FLAG} {text}: {exc}") from exc
    if not LEAST_S <= seconds <= MOST_S:
        raise UsageError(f"{FLAG} {text}: between {LEAST_S:g} s and a day")
    return seconds


def first_verb(rest: Sequence[str]) -> str:
    """The first word that is no flag; "" for none."""
    return next((text for text in rest if not text.startswith("-")), "")


def usual_interval_s(word: str, rest: Sequence[str], intervals: Mapping[str, float]) -> float:
    """How often a command is looked at where nobody says.

    Raises:
        UsageError: It is one that is done once.
    """
    verb = first_verb(rest)
    seconds = intervals.get(verb, intervals.get(""))
    if seconds is None:
        name = f"{word} {verb}".strip()
        hint = "status, ls, sweep, dx and job show can be watched"
        raise UsageError(f"{FLAG}: `brctl {name}` is done once", hint=hint)
    return seconds


class Display(Protocol):
    """Where looks are shown."""

    def show(self, page: str, status: str) -> None:
        """Show a look, and a line about the watch itself."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class LookBlocks:
    """One look after another, for a pipe or a file; documents come without a line between."""

    def __init__(self, stream: TextIO, *, titled: bool) -> None:
        self._stream, self._titled = stream, titled

    def show(self, page: str, status: str) -> None:
        self._stream.write(f"--- {status}\n{page}" if self._titled else page)
        self._stream.flush()

    def close(self) -> None:
        """Nothing was changed."""


class InPlace:
    """Each look over the one before; the last one stays on the screen that was there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = ""
        stream.write(_OPEN)
        stream.flush()

    def show(self, page: str, status: str) -> None:
        self._last = page
        height = shutil.get_terminal_size().lines
        lines = [f"\x1b[2m{status}   ctrl+c ends\x1b[0m", *page.splitlines()]
        if len(lines) > height:
            left_out = len(lines) - height + 1
            lines = [*lines[: height - 1], f"... {left_out} more lines; the last look stays whole"]
        self._stream.write("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
        self._stream.flush()

    def close(self) -> None:
        self._stream.write(_CLOSE + self._last)
        self._stream.flush()


def display_for(stream: TextIO, form: str) -> Display:
    """In place on a terminal that can, blocks everywhere else."""
    tables = form in ("table", "wide")
    if tables and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return InPlace(stream)
    return LookBlocks(stream, titled=tables)


def watch(
    look: Callable[[], int],
    every_s: float,
    display: Display,
    *,
    title: str,
    pause: Callable[[float], None] = time.sleep,
    seconds: Callable[[], float] = time.monotonic,
) -> int:
    """Look until somebody interrupts; the exit code of the last look that was whole.

    A look begins when the one before has ended and, so that nobody watches a fleet to death, after
    a pause at least as long as that one took.
    """
    code, number = int(ExitCode.INTERRUPTED), 0
    with terminated_politely(), contextlib.closing(display):
        while True:
            began = seconds()
            try:
                number += 1
                found, page = captured(look)
                took_s = seconds() - began
                wait_s = max(every_s - took_s, took_s)
                code = found
                display.show(page, _status(title, number, took_s, every_s, wait_s))
                pause(wait_s)
            except KeyboardInterrupt:
                return code


def _status(title: str, number: int, took_s: float, every_s: float, wait_s: float) -> str:
    line = f"{utc_text(now())}  {title}  look {number}, took {describe_duration(took_s)}"
    if took_s > every_s:
        return (
            f"{line}: longer than the {every_s:g} s between looks, the next in"
            f" {describe_duration(wait_s)}"
        )
    return f"{line}, every {every_s:g} s"


class _Part(io.TextIOBase):
    """A stream that keeps what is written, in one order with others."""

    def __init__(self, kept: list[str], *, tty: bool) -> None:
        self._kept, self._tty = kept, tty

    def write(self, text: str) -> int:
        self._kept.append(text)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._tty


def captured(look: Callable[[], int]) -> tuple[int, str]:
    """The code of a look and what it printed; notes too where they would go to the same screen.

    Nothing that counts while it goes is shown: stderr is no terminal meanwhile.
    """
    kept: list[str] = []
    with contextlib.ExitStack() as stack:
        tty = sys.stdout.isatty()
        stack.enter_context(contextlib.redirect_stdout(_Part(kept, tty=tty)))
        if tty and sys.stderr.isatty():
            stack.enter_context(contextlib.redirect_stderr(_Part(kept, tty=False)))
        code = look()
    return code, "".join(kept)


@contextlib.contextmanager
def terminated_politely() -> Iterator[None]:
    """A kill leaves the terminal as it was, too."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(_TERMINATED)
