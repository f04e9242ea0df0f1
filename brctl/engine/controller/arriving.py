"""Files that come from nodes piece by piece, each put in place once it is whole."""

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from brctl.model.command import CommandResult, Outcome

_FREE_AFTERWARDS_BYTES = 1 << 30
_STDERR_BYTES = 64 << 10


def share_of_disk(folder: Path, nodes: int) -> int:
    """Bytes that each of so many nodes may send: a hostile one must not fill our disk."""
    free = shutil.disk_usage(folder).free - _FREE_AFTERWARDS_BYTES
    return max(1, free // nodes)


class ArrivingFile:
    """One node's file while it comes, beside the place it takes in the end.

    Attributes:
        stderr: The first words of the command that sends it.
    """

    def __init__(self, path: Path) -> None:
        self.stderr = b""
        self._path = path
        self._part = path.with_name(f".{path.name}.brctl-part")
        self._stream: BinaryIO | None = None

    def take(self, data: bytes, is_stderr: bool) -> None:
        """A piece, in order."""
        if is_stderr:
            self.stderr = (self.stderr + data)[:_STDERR_BYTES]
        else:
            self._opened().write(data)

    def end(self, answer: CommandResult) -> CommandResult:
        """The answer with the file's path as output, or why there is none."""
        said = b""
        if is_whole(answer):
            self._opened().close()
            self._part.replace(self._path)
            said = f"{self._path}\n".encode()
        self.give_up()
        return replace(answer, stdout=said, stderr=self.stderr)

    def give_up(self) -> None:
        """Leave nothing of a file that did not come whole."""
        # A full disk refuses the last piece again; what it holds already has to go all the same.
        with suppress(OSError):
            if self._stream is not None:
                self._stream.close()
        self._part.unlink(missing_ok=True)

    def _opened(self) -> BinaryIO:
        if self._stream is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self._part.open("wb")
        return self._stream


def is_whole(answer: CommandResult) -> bool:
    """Whether the command on the node sent all there was."""
    return answer.outcome is Outcome.ANSWERED and answer.exit_status == 0
