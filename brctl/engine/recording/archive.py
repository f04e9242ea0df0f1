"""An incident as one file: tar packed with zstd, a manifest first that names all else by digest.

The same members give the same bytes. Who reads one trusts nothing in it: names, sizes, types and
digests are checked while it is unpacked, in memory and never to a name that it chose.
"""

import hashlib
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
import zstandard

from brctl.model.errors import ConfigError

Value = TypeVar("Value")

SCHEMA = "brctl.incident/1"
MANIFEST = "manifest.json"
SUFFIX = ".brctl.tar.zst"
MEMBERS_LIMIT = 20_000
MEMBER_LIMIT, UNPACKED_LIMIT = 256 << 20, 512 << 20
UNPACKED_FREELY_BYTES, PACKED_TIMES = 32 << 20, 2_000
"""A fleet of a thousand nodes that all say the same packs to a few hundredths; a bomb packs ten
thousandfold."""

_LEVEL = 9
_WINDOW_BYTES = 128 << 20
_BLOCK = 512
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,60}){0,2}")
_REGULAR = (b"0", b"\0")
_SIZE = re.compile(rb"[0-7]{1,11}")


class Member(msgspec.Struct, frozen=True):
    """One file of the archive, as the manifest names it."""

    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What an archive says of itself.

    Attributes:
        made_by: The version that wrote it.
        redaction: How often each kind of secret was taken out.
        cuts: What was left out, and why.
        profile: For whom it was redacted; names stand in it only in the house.
        names: How many names of each kind have pseudonyms.
        journals: Of each run, how its journal stood before anything was taken out of it.
    """

    schema: str
    made_by: str
    looks: tuple[str, ...]
    redaction: dict[str, int]
    cuts: tuple[str, ...]
    members: tuple[Member, ...]
    profile: str = "house"
    names: dict[str, int] = {}
    journals: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class IncidentFile:
    """An archive that was read and found whole.

    Attributes:
        digest: Of the manifest, which names all else: the identity of what is recorded.
    """

    manifest: Manifest
    members: Mapping[str, bytes] = field(repr=False)
    digest: str


def pack(
    members: Mapping[str, bytes],
    *,
    made_by: str,
    looks: tuple[str, ...],
    redaction: Mapping[str, int],
    cuts: tuple[str, ...],
    profile: str = "house",
    names: Mapping[str, int] | None = None,
    journals: Mapping[str, str] | None = None,
) -> bytes:
    """The bytes of an archive, the same for the same members."""
    listed = tuple(
        Member(name, len(raw), hashlib.sha256(raw).hexdigest())
        for name, raw in sorted(members.items())
    )
    manifest = Manifest(
        SCHEMA, made_by, looks, _sorted(redaction), cuts, listed, profile, _sorted(names or {}),
        _sorted(journals or {}),
    )  # fmt: skip
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        first = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        for name, raw in [(MANIFEST, first), *sorted(members.items())]:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(raw), 0o644
            archive.addfile(entry, io.BytesIO(raw))
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    return packer.compress(buffer.getvalue())


def packed_again(file: IncidentFile, more: Mapping[str, bytes]) -> bytes:
    """The same archive with members added or replaced."""
    old = file.manifest
    return pack(
        {**file.members, **more},
        made_by=old.made_by,
        looks=old.looks,
        redaction=old.redaction,
        cuts=old.cuts,
        profile=old.profile,
        names=old.names,
        journals=old.journals,
    )


def _sorted(counts: Mapping[str, Value]) -> dict[str, Value]:
    return dict(sorted(counts.items()))


def read(path: Path) -> IncidentFile:
    """An archive from disk.

    Raises:
        ConfigError: It is none, damaged, of a newer version, or tries something.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: no such file")
    with path.open("rb") as stream:
        return read_from(path, stream, path.stat().st_size)


def read_from(path: Path, stream: BinaryIO, size: int) -> IncidentFile:
    """An archive from a stream of so many packed bytes; `path` is what errors name.

    Raises:
        ConfigError: As `read`.
    """
    try:
        return unpack(stream, size)
    except (ValueError, zstandard.ZstdError, EOFError) as exc:
        text = str(exc) or "damaged"
        raise ConfigError(f"{path}: not an incident that can be read: {text}") from exc


def unpack(stream: BinaryIO, size: int) -> IncidentFile:
    """What a stream of so many packed bytes holds.

    Raises:
        ValueError: It is no such archive, or not whole.
        zstandard.ZstdError: The same, seen by zstd.
    """
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    with closing(unpacker.stream_reader(stream)) as reader:
        files = _files(_Bounded(reader, max(UNPACKED_FREELY_BYTES, PACKED_TIMES * size)))
        name, first = next(files, ("", b""))
        if name != MANIFEST:
            raise ValueError("it does not begin with a manifest")
        manifest = _manifest(first)
        listed = {member.path: member for member in manifest.members}
        members = {name: _checked(name, raw, listed.get(name)) for name, raw in files}
    missing = sorted(set(listed) - set(members))
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return IncidentFile(manifest, members, hashlib.sha256(first).hexdigest())


def _manifest(raw: bytes) -> Manifest:
    try:
        return _known_schema(raw)
    except RecursionError as exc:
        raise ValueError("its manifest is nested too deep") from exc


def _known_schema(raw: bytes) -> Manifest:
    schema = msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).get("schema", b"null")
    if bytes(schema) != msgspec.json.encode(SCHEMA):
        said = bytes(schema)[:40].decode("utf-8", "replace")
        raise ValueError(f"it is of schema {said}, and this version reads {SCHEMA}")
    return msgspec.json.decode(raw, type=Manifest)


def _checked(name: str, raw: bytes, listed: Member | None) -> bytes:
    if listed is None:
        raise ValueError(f"{name} is not in the manifest")
    if (len(raw), hashlib.sha256(raw).hexdigest()) != (listed.bytes, listed.sha256):
        raise ValueError(f"{name} is not what the manifest says: its digest differs")
    return raw


def _files(stream: "_Bounded") -> Iterator[tuple[str, bytes]]:
    """Names and contents, one after the other; only plain files with plain names."""
    seen: set[str] = set()
    while True:
        header = stream.read(_BLOCK)
        if not header.strip(b"\0"):
            return
        name, size = _entry(header)
        if name in seen or len(seen) >= MEMBERS_LIMIT:
            raise ValueError(f"{name} twice, or more than {MEMBERS_LIMIT} members")
        seen.add(name)
        yield name, stream.read(size)
        stream.read(-size % _BLOCK)


def _entry(header: bytes) -> tuple[str, int]:
    """Name and size of a member. `tarfile` would follow headers of any length, and links."""
    stated = header[148:156].strip(b" \0")
    counted = sum(header[:148]) + 8 * ord(" ") + sum(header[156:])
    if stated != b"%06o" % counted:
        raise ValueError("a header is damaged, or this is no tar archive")
    name = header[:100].rstrip(b"\0").decode("ascii", "replace")
    if header[156:157] not in _REGULAR or header[345:500].strip(b"\0"):
        raise ValueError(f"{name[:80]!r} is no plain file")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a member")
    return name, _size(name, header[124:136].strip(b" \0"))


def _size(name: str, octal: bytes) -> int:
    """Bytes of a member; `int` would take a sign too, and -1 reads to the end, past every bound."""
    if not _SIZE.fullmatch(octal):
        raise ValueError(f"{name} has no size: {octal!r}")
    size = int(octal, 8)
    if size > MEMBER_LIMIT:
        raise ValueError(f"{name} has {size} bytes, more than {MEMBER_LIMIT}")
    return size


class _Bounded:
    """A stream that ends with an error where a bomb goes on."""

    def __init__(self, stream: zstandard.ZstdDecompressionReader, limit: int) -> None:
        self._stream = stream
        self._left = self._limit = min(limit, UNPACKED_LIMIT)

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        if size > self._left:
            raise ValueError(f"it unpacks to more than {self._limit} bytes")
        self._left -= size
        parts: list[bytes] = []
        while size:
            part = self._stream.read(min(size, 1 << 20))
            if not part:
                raise ValueError("it is cut off")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
