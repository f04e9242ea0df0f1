"""Read what other tools collected: a folder, a tar in any packing, or one log; nothing is unpacked.

Names in an archive are only compared and shown, links and devices are left out, and every size is
bounded: a file this is read from came from anywhere.
"""

import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from brctl.engine.logs.log_sources import Notes, list_inputs, read_blocks, unpack
from brctl.model.errors import ConfigError

FILES_LIMIT = 50_000
FILE_BYTES, TOTAL_BYTES, READ_BYTES = 4 << 20, 192 << 20, 2 << 30
"""Of each file the beginning and the end are kept; what is in between is told. No file is read
beyond READ_BYTES."""

HEAD_BYTES = 256 << 10
HEADER_BYTES = 64 << 10
"""Of a long name or link in a tar archive; longer ones are nobody's."""

_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_TAR_BLOCK = 512
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)
_READS_PAST_END = 64
"""A size that no archive holds is skipped block by block, for years."""

_EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE)


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """One file of a collection; `read` gives its bytes once, cut to the limits."""

    path: str
    read: Callable[[], bytes]


def foreign_files(source: Path, notes: Notes) -> Iterator[ForeignFile]:
    """The files of a collection, in its order.

    Raises:
        ConfigError: It is no collection, or tries something.
        UsageError: There is no such file.
    """
    if source.is_dir():
        for path in list_inputs(source, notes):
            name = path.relative_to(source).as_posix()
            yield ForeignFile(name, lambda path=path: _cut(read_blocks(path, notes), notes, path))  # type: ignore[misc]
        return
    list_inputs(source, notes)
    blocks = read_blocks(source, notes)
    first = next(blocks, b"")
    if first[_TAR_MAGIC_AT : _TAR_MAGIC_AT + len(_TAR_MAGIC)] != _TAR_MAGIC:
        whole = _chained(first, blocks)
        yield ForeignFile(source.name, lambda: _cut(whole, notes, source))
        return
    try:
        yield from _of_tar(_BlockStream(_chained(first, blocks)), notes)
    except RecursionError as exc:
        raise ConfigError(f"{source}: the archive cannot be read: its headers nest") from exc
    except (tarfile.TarError, ValueError, EOFError, IndexError, OverflowError) as exc:
        raise ConfigError(f"{source}: the archive cannot be read: {exc}") from exc


def _of_tar(stream: "_BlockStream", notes: Notes) -> Iterator[ForeignFile]:
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_BoundedHeader) as archive:
        for number, entry in enumerate(archive):
            if number >= FILES_LIMIT:
                raise ValueError(f"more than {FILES_LIMIT} members")
            name = entry.name[:300]
            if _is_plain(entry) and not _climbs(name):
                yield ForeignFile(name, lambda entry=entry: _member(archive, entry, notes))  # type: ignore[misc]
            elif not entry.isdir():
                notes.append(f"{name!r}: no plain file with a plain name, left out")
    if any(stream.newest):
        notes.append("the archive ends before its end: it is truncated")


def _is_plain(entry: tarfile.TarInfo) -> bool:
    """A sparse member is as long as its header says, whatever the archive holds of it."""
    return entry.type in _PLAIN and entry.sparse is None


def _climbs(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/")


def _member(archive: tarfile.TarFile, entry: tarfile.TarInfo, notes: Notes) -> bytes:
    stream = archive.extractfile(entry)
    if stream is None:
        return b""
    name = entry.name[:300]
    return _cut(_until_broken(cast("BinaryIO", stream), name, notes), notes, name)


def _until_broken(stream: BinaryIO, name: str, notes: Notes) -> Iterator[bytes]:
    """What there is of a member of a truncated archive."""
    try:
        yield from unpack(stream, name, notes)
    except tarfile.TarError as exc:
        notes.append(f"{name}: {exc}")


def _cut(blocks: Iterator[bytes], notes: Notes, name: object) -> bytes:
    """Beginning and end of a file, whole lines not promised."""
    head, tail, total = b"", bytearray(), 0
    for block in blocks:
        total += len(block)
        if total > READ_BYTES:
            notes.append(f"{name}: more than {READ_BYTES} bytes, the rest was not read")
            break
        room = max(0, HEAD_BYTES - len(head))
        head, rest = head + block[:room], block[room:]
        tail += rest
        del tail[: max(0, len(tail) - (FILE_BYTES - HEAD_BYTES))]
    lost = min(total, READ_BYTES) - len(head) - len(tail)
    if lost:
        notes.append(f"{name}: {lost} bytes in its middle were left out")
    return head + bytes(tail)


def _chained(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from blocks


class _BlockStream(io.RawIOBase):
    """Blocks as a stream that `tarfile` reads forward.

    Attributes:
        newest: The last bytes that were read; zeros where an archive ended as it should.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.newest = b""
        self._blocks = blocks
        self._left = b""
        self._past_end = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts = [self._left]
        have = len(self._left)
        while have < size and (block := next(self._blocks, b"")):
            parts.append(block)
            have += len(block)
        whole = b"".join(parts)
        self._past_end += not whole
        if self._past_end > _READS_PAST_END:
            raise tarfile.ReadError("it ends before a member does")
        self._left = whole[size:]
        self.newest = whole[:size][-_TAR_BLOCK:] or self.newest
        return whole[:size]


class _BoundedHeader(tarfile.TarInfo):
    """`tarfile` reads a long name of any length into memory, and a sparse member without an end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_BoundedHeader":
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _EXTENDED and entry.size > HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {entry.size} bytes")
        if entry.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a sparse member; pack it without --sparse")
        return entry
