"""What goes on, for whoever sits at a terminal: one line on stderr that rewrites itself.

Nothing is written where stderr is no terminal (a pipe, a file, cron) nor in the first moments.
"""

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, Self, TextIO

from brctl.cli.output import say
from brctl.model.units import describe_duration

AFTER_S = 1.0
"""Until then nobody wonders; a line that flashes up is noise."""
EVERY_S = 0.25
_CLEAR = "\r\x1b[K"


class CommandProgress(Protocol):
    """What a command tells of its work while it goes."""

    def tell(self, text: str) -> None:
        """What it does now; the time beside it starts anew."""
        ...

    def say(self, text: str) -> None:
        """A line that stays, above the one that changes."""
        ...

    def show(self, text: str) -> None:
        """Lines of the answer, above the one that changes."""
        ...

    def counted(
        self, total: int, then: str = "", *, of: str = "nodes answered"
    ) -> Callable[[object], None]:
        """Called once for each of so many; `then` is what is done after the last."""
        ...


class _Told:
    """Counts for nobody: lines that stay are written, all else is silence."""

    def tell(self, text: str) -> None:
        """Nobody watches."""

    def say(self, text: str) -> None:
        say(text)

    def show(self, text: str) -> None:
        _show(text)

    def counted(
        self, total: int, then: str = "", *, of: str = "nodes answered"
    ) -> Callable[[object], None]:
        return lambda _: None


class ProgressLine:
    """The line, kept up by a thread, so that work that never yields is seen to go on."""

    def __init__(
        self, stream: TextIO, *, after_s: float = AFTER_S, every_s: float = EVERY_S
    ) -> None:
        self._stream, self._after_s, self._every_s = stream, after_s, every_s
        self._text, self._since = "", time.monotonic()
        self._shown = ""
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep_up, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._clear()

    def tell(self, text: str) -> None:
        self._text, self._since = text, time.monotonic()

    def say(self, text: str) -> None:
        with self._lock:
            self._clear()
            say(text)

    def show(self, text: str) -> None:
        with self._lock:
            self._clear()
            _show(text)

    def counted(
        self, total: int, then: str = "", *, of: str = "nodes answered"
    ) -> Callable[[object], None]:
        began, done = time.monotonic(), 0

        def count(_node: object) -> None:
            nonlocal done
            done += 1
            if done >= total and then:
                self.tell(then)
            else:
                self._text, self._since = f"{done}/{total} {of}", began

        self.tell(f"0/{total} {of}")
        return count

    def _keep_up(self) -> None:
        while not self._over.wait(self._every_s):
            age_s = time.monotonic() - self._since
            if self._text and age_s >= self._after_s:
                with self._lock:
                    self._draw(f"{self._text}  {_whole(age_s)}")

    def _draw(self, line: str) -> None:
        # Only a terminal pays for it, and only once something takes long.
        from rich.cells import set_cell_size

        width = max(shutil.get_terminal_size().columns - 1, 10)
        fitting = set_cell_size(line, width).rstrip()
        if fitting != self._shown:
            self._stream.write(f"\r{fitting}\x1b[K")
            self._stream.flush()
            self._shown = fitting

    def _clear(self) -> None:
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._shown = ""


def _show(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what a search finds on its way, before its document


def _whole(seconds: float) -> str:
    return f"{int(seconds)} s" if seconds < 60 else describe_duration(seconds)


@contextlib.contextmanager
def progress(text: str = "", *, quiet: bool = False) -> Iterator[CommandProgress]:
    """A line while something goes on, or nobody to tell."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield _Told()
        return
    with ProgressLine(sys.stderr) as line:
        line.tell(text)
        yield line
