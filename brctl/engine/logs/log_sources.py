"""Bytes of a log however it is packed (gzip, zstd, xz, bzip2, a pipe); never all at once."""

import bz2
import codecs
import io
import lzma
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from brctl.model.errors import UsageError

BLOCK_BYTES = 1 << 20
FILE_LIMIT = 100_000
"""More files than this in one directory is a wrong path, not a job's logs."""

_ZSTD_WINDOW_BYTES = 128 << 20
"""The largest window `zstd --ultra` writes; a hostile header may ask for terabytes."""


_SNIFFED = 4096
"""Bytes that show an encoding: of text in UTF-16 nearly every second one is zero."""

UNPACKED_FREELY_BYTES = 1 << 30
PACKED_TIMES = 500
"""More than any log packs, by far: stamps and counters differ. A bomb packs a thousandfold."""


class Notes(Protocol):
    """Where a reader says what it could not read."""

    def append(self, note: str, /) -> None: ...


def list_inputs(path: Path, notes: Notes) -> list[Path]:
    """The regular files of a file or directory argument, sorted; the rest is noted.

    Raises:
        UsageError: There is no such file, or far too many.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file or directory")
    if not path.is_dir():
        return [path]
    found = []
    for candidate in sorted(path.rglob("*")):
        try:
            mode = candidate.lstat().st_mode
        except OSError as error:  # gone since it was listed, as files of running programs are
            notes.append(f"{candidate}: {error.strerror}")
            continue
        if stat.S_ISREG(mode):
            found.append(candidate)
        elif not stat.S_ISDIR(mode):
            notes.append(f"{candidate}: not a regular file, left out")
        if len(found) > FILE_LIMIT:
            raise UsageError(f"{path}: more than {FILE_LIMIT} files")
    return found


def read_blocks(path: Path, notes: Notes) -> Iterator[bytes]:
    """Blocks of at most a mebibyte; a truncated archive ends early with a note."""
    with _opened(path) as stream:
        yield from unpack(stream, str(path), notes)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    # Some never end, and of some opening them alone does something.
    if path.is_char_device() or path.is_block_device():
        raise UsageError(f"{path}: a device, no log; give a file, a folder, a pipe or -")
    with path.open("rb") as stream:
        yield stream


def unpack(stream: BinaryIO, name: str, notes: Notes) -> Iterator[bytes]:
    """The stream's blocks, decompressed when its first bytes say so."""
    head = stream.read(BLOCK_BYTES)
    unpackers = {
        b"\x1f\x8b": _inflate, b"\x28\xb5\x2f\xfd": _unzstd, b"\xfd7zXZ": _unpack_python,
        b"BZh": _unpack_python,
    }  # fmt: skip
    found = next(
        (unpacker for magic, unpacker in unpackers.items() if head.startswith(magic)), None
    )
    if found is not None:
        packed = _Joined(b"", stream)
        blocks = found(head, cast("BinaryIO", packed), name, notes)
        yield from _bounded(blocks, lambda: len(head) + packed.count, name, notes)
        return
    decoder = _decoder_of(head)
    while head:
        yield decoder.decode(head).encode() if decoder else head
        head = stream.read(BLOCK_BYTES)


def _decoder_of(head: bytes) -> codecs.IncrementalDecoder | None:
    """What reads UTF-16, as PowerShell writes it; every pattern is for bytes of ASCII."""
    start = head[:_SNIFFED]
    marked = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if marked and start.count(0) * 4 > len(start):
        return codecs.getincrementaldecoder("utf-16")("replace")
    return None


def _bounded(
    blocks: Iterator[bytes], packed: Callable[[], int], name: str, notes: Notes
) -> Iterator[bytes]:
    """Blocks until they are many times what they were packed in: no log is, and a bomb is."""
    total = 0
    for block in blocks:
        total += len(block)
        if total > UNPACKED_FREELY_BYTES and total > PACKED_TIMES * packed():
            notes.append(
                f"{name}: unpacks to more than {PACKED_TIMES} times its size, no log does;"
                f" only its first {total} bytes were read"
            )
            return
        yield block


def _inflate(head: bytes, stream: BinaryIO, name: str, notes: Notes) -> Iterator[bytes]:
    machine = zlib.decompressobj(31)
    data = head
    try:
        while data:
            yield machine.decompress(data, BLOCK_BYTES)
            data = machine.unconsumed_tail or machine.unused_data or stream.read(BLOCK_BYTES)
            if machine.eof:
                machine = zlib.decompressobj(31)
                if data and not data.startswith(b"\x1f\x8b"):
                    notes.append(f"{name}: bytes after the gzip end were left out")
                    return
                if not data:
                    return
        notes.append(f"{name}: truncated gzip; read up to where it breaks off")
    except zlib.error as exc:
        notes.append(f"{name}: broken gzip, read up to there: {exc}")


class _Joined(io.RawIOBase):
    """The bytes already read, then the stream; counts what it read there."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._head = head
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        if self._head:
            taken, self._head = self._head[:size], self._head[size:]
            return taken
        raw = self._stream.read(size)
        self.count += len(raw)
        return raw


def _unzstd(head: bytes, stream: BinaryIO, name: str, notes: Notes) -> Iterator[bytes]:
    machine = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    declared = zstandard.frame_content_size(head)
    total = 0
    try:
        source = cast("BinaryIO", _Joined(head, stream))  # raw file, but IO[bytes] to the stubs
        reader = machine.stream_reader(source, read_across_frames=True)
        while block := reader.read(BLOCK_BYTES):
            total += len(block)
            yield block
    except zstandard.ZstdError as exc:
        notes.append(f"{name}: broken zstd, read up to there: {exc}")
        return
    if declared > total:
        notes.append(f"{name}: truncated zstd; read {total} of {declared} bytes")


def _unpack_python(head: bytes, stream: BinaryIO, name: str, notes: Notes) -> Iterator[bytes]:
    machine = bz2.BZ2Decompressor() if head.startswith(b"BZh") else lzma.LZMADecompressor()
    data = head
    try:
        while not machine.eof:
            yield machine.decompress(data, BLOCK_BYTES)
            data = stream.read(BLOCK_BYTES) if machine.needs_input else b""
            if machine.needs_input and not data:
                notes.append(f"{name}: truncated archive; read up to where it breaks off")
                return
    except (OSError, lzma.LZMAError) as exc:
        notes.append(f"{name}: broken archive, read up to there: {exc}")
