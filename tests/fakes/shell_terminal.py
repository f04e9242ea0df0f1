"""A real shell on a pseudo terminal, to press TAB in."""

import os
import pty
import re
import select
import signal
import time
from collections.abc import Mapping, Sequence

from tests.timeouts import TIMEOUT_S


class ShellTerminal:
    """Keys go in, what the terminal shows comes out; `wait_for` is the only way to wait."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        self.shown = ""
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            os.execvpe(argv[0], list(argv), dict(environ))  # noqa: S606

    def press(self, keys: str) -> None:
        """Type keys; what was shown before them is forgotten."""
        self.shown = ""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> str:
        """All that was shown since the last keys, once `text` is in it."""
        until = time.monotonic() + TIMEOUT_S
        while text not in self.screen():
            ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"no {text!r} in {self.shown!r}"
            self.shown += os.read(self._master, 65536).decode(errors="replace")
        return self.screen()

    def screen(self) -> str:
        """What stands there after backspaces and returns, as a terminal draws it."""
        lines, column = [""], 0
        for char in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown):
            if char == "\n":
                lines.append("")
                column = 0
            elif char == "\r":
                column = 0
            elif char == "\b":
                column = max(0, column - 1)
            else:
                lines[-1] = lines[-1][:column] + char + lines[-1][column + 1 :]
                column += 1
        return "\n".join(lines)

    def close(self) -> None:
        """End the shell."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._master)
