"""Files to and from nodes through a command's own streams: nothing but `sh`, `cat` and `tar`."""

import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from brctl.engine.controller.arriving import is_whole
from brctl.library.durable_files import write_atomic
from brctl.model.command import Command, CommandResult
from brctl.model.errors import UsageError

GET_LIMIT_BYTES = 64 << 20
"""What a transport without streams holds in memory of a file that comes back."""

FOLDER_LIMIT_BYTES = 1 << 30
"""A folder is packed into a file without a name, which must not fill the disk."""

IN_FLIGHT_LIMIT_BYTES = 512 << 20
AT_ONCE_BYTES = 1 << 20
"""So little is sent in one piece, which is fastest and works over every transport."""

# The new file stands beside the old one until it is whole, then takes its place; the end of a cut
# connection looks like the end of the file, so its length is compared. A folder that exists is only
# known there; the file goes into it, as with cp.
_PUT_FILE = (
    'set -e; umask 077; t="$1"; if [ -d "$t" ]; then t="${t%/}/$3"; fi; '
    'if [ -d "$t" ]; then echo "$t is a folder" >&2; exit 1; fi; '
    'p="$t.brctl-$$"; trap \'rm -f "$p"\' EXIT; cat >"$p"; n=$(wc -c <"$p"); '
    'if [ "$n" -ne "$4" ]; then echo "$t: $n bytes of $4 came" >&2; exit 1; fi; '
    'chmod "$2" "$p"; mv "$p" "$t"'
)
_PUT_TREE = 'set -e; mkdir -p "$1"; tar -x -p -f - -C "$1"'


@dataclass(frozen=True, slots=True)
class Payload:
    """What is copied, opened; a folder is packed.

    Attributes:
        descriptor: A file that every node reads from its beginning.
        mode: Of the file, in octal; "" for a folder.
    """

    name: str
    descriptor: int
    size_bytes: int
    mode: str

    def command(self, destination: str, deadline_s: float) -> Command:
        """What takes it on a node: a file at a path, or a folder's content in a folder."""
        if not self.mode:
            return Command(("sh", "-c", _PUT_TREE, "sh", destination), b"", deadline_s)
        target = destination + self.name if destination.endswith("/") else destination
        words = (target, self.mode, self.name, str(self.size_bytes))
        return Command(("sh", "-c", _PUT_FILE, "sh", *words), b"", deadline_s)

    @property
    def whole(self) -> bytes | None:
        """All of it, when that is little."""
        if self.size_bytes > AT_ONCE_BYTES:
            return None
        return os.pread(self.descriptor, self.size_bytes, 0)


@contextmanager
def open_payload(source: Path) -> Iterator[Payload]:
    """A file or folder to copy.

    Raises:
        UsageError: It is missing, is neither, or is a folder that is too large.
    """
    if source.is_dir():
        with tempfile.TemporaryFile(prefix="brctl-cp-") as packed:
            _pack_tree(source, packed)
            packed.flush()
            yield Payload(source.name, packed.fileno(), packed.tell(), "")
        return
    descriptor = _open_file(source)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{source}: not a regular file or folder")
        if not found.st_size and os.pread(descriptor, 1, 0):
            raise UsageError(f"{source}: does not tell its size", hint="copy it to a file first")
        yield Payload(source.name, descriptor, found.st_size, f"{found.st_mode & 0o777:o}")
    finally:
        os.close(descriptor)


def _open_file(source: Path) -> int:
    try:
        return os.open(source, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would be waited for
    except OSError as exc:
        raise UsageError(f"{source}: {exc.strerror}") from exc


def _pack_tree(folder: Path, into: BinaryIO) -> None:
    """A folder's content as an uncompressed tar; devices and sockets are left out."""
    with tarfile.open(fileobj=into, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            found = path.lstat()
            if into.tell() + found.st_size > FOLDER_LIMIT_BYTES:
                limit = FOLDER_LIMIT_BYTES >> 20
                hint = "use the site's file system, or rsync"
                raise UsageError(f"{folder}: larger than {limit} MiB", hint=hint)
            if stat.S_IFMT(found.st_mode) in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
                archive.add(path, str(path.relative_to(folder)), recursive=False)


def get_command(path: str, deadline_s: float, limit_bytes: int) -> Command:
    """The command that sends one file of a node back."""
    return Command(("cat", "--", path), b"", deadline_s, output_limit_bytes=limit_bytes)


def save_answer(answer: CommandResult, name: str, folder: Path) -> Path | None:
    """Write what `get_command` gave to `folder/NODE/name`; None for no whole file."""
    if not is_whole(answer):
        return None
    target = folder / answer.node / name
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, answer.stdout)
    return target


def bounded_fanout(payload_bytes: int, fanout: int) -> int:
    """As many nodes at once as fit in memory with a copy of the payload each.

    Not all transports hold one, but none is slower for it: so much at once fills any network.
    """
    held_bytes = min(payload_bytes, GET_LIMIT_BYTES)
    return max(1, min(fanout, IN_FLIGHT_LIMIT_BYTES // max(1, held_bytes)))
