"""A person at a terminal: types commands of brctl, reads the answer, types what it asks for."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

COLUMNS, LINES = 120, 40
_WORDS = re.compile(r"type `([^`]{1,80})` to go on[^\n]{0,60}: *$")
_ONE_KEY = re.compile(r"\[(y|y/a)/N\]: $")
"""The last of them is pressed: a is yes, and yes to what follows if that does not help."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Said(NamedTuple):
    """What a command said on the terminal, and how it ended; None when it was ended for time."""

    text: str
    status: int | None


@dataclass
class Person:
    """Counts every key; a command that was typed before is fetched back with the arrow up.

    Attributes:
        transcript: Where everything that was typed and said is added; None for nowhere.
        typed: The commands, in order.
    """

    environment: Mapping[str, str]
    transcript: Path | None = None
    keys: int = 0
    typed: list[str] = field(default_factory=list)

    def types(self, command: str, limit_s: float) -> Said:
        """Type a command and everything it asks for, and wait for its end."""
        past = self.typed[::-1]
        back = past.index(command) + 1 if command in past else len(command)
        self.keys += min(back, len(command)) + 1
        self.typed.append(command)
        return self._run(command, limit_s, counts=True)

    def looks(self, command: str, limit_s: float) -> Said:
        """A command that is not needed, and not counted."""
        return self._run(command, limit_s, counts=False)

    def _run(self, command: str, limit_s: float, *, counts: bool) -> Said:
        ours, theirs = pty.openpty()
        words = command.split()[1:]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "brctl", *words], stdin=theirs, stdout=theirs,
            stderr=theirs, env=dict(self.environment), start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        try:
            said = Said(*self._talk(process, ours, time.monotonic() + limit_s, counts=counts))
            self._keep(f"$ {command}\n{said.text}\n[{said.status}]\n\n")
            return said
        finally:
            os.close(ours)

    def _keep(self, text: str) -> None:
        if self.transcript is not None:
            with self.transcript.open("a") as stream:
                stream.write(text)

    def _talk(
        self, process: "subprocess.Popen[bytes]", terminal: int, deadline: float, *, counts: bool
    ) -> tuple[str, int | None]:
        text, answered = "", 0
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                process.terminate()
                process.wait()
                return text, None
            if select.select([terminal], [], [], min(left, 0.2))[0]:
                try:
                    chunk = os.read(terminal, 65536)
                except OSError:  # the other end is closed: it has ended
                    return text, process.wait()
                text += _ESCAPES.sub("", chunk.decode("utf-8", "replace")).replace("\r", "")
                asked = _asked(text[answered:])
                if asked and counts:
                    answered = len(text)
                    self.keys += len(asked)
                    os.write(terminal, asked.encode())


def _asked(text: str) -> str:
    """The keys that the end of the text asks for; "" for none."""
    end = text.rstrip("\n")
    words = _WORDS.search(end)
    if words is not None:
        return f"{words[1]}\n"
    key = _ONE_KEY.search(end)
    return key[1][-1] if key else ""


def environment_of(config: str) -> dict[str, str]:
    """A shell in which the lab's configuration was exported once."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BRCTL_")}
    return {
        **kept, "BRCTL_CONFIG": config, "TERM": "xterm", "COLUMNS": str(COLUMNS),
        "LINES": str(LINES),
    }  # fmt: skip
