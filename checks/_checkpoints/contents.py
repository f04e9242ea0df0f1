"""RUNS ON THE NODE. What one checkpoint holds and what is wrong with it; reads files, runs nothing.

A file that torch.save wrote is a zip whose directory comes last: a cut one has none. A safetensors
file begins with the place of every tensor. Neither is ever unpickled or loaded.
"""

import io
import json
import os
import pickletools
import stat
import struct
import zipfile

DIRECTORY_LIMIT = 64 << 20
HEADER_LIMIT = 100 << 20
JSON_LIMIT = 64 << 20
PICKLE_LIMIT = 8 << 20
WHOLE = ("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1")
STEP_KEYS = ("global_step", "iter_num", "iteration", "global_steps", "step")


class DamagedError(ValueError):
    """A part that nobody can load, and why."""


class UnknownError(ValueError):
    """A part that has nothing to check it by, and why."""


class Contents(object):
    """What was found in one checkpoint.

    `unfinished` and `unknown` are sentences: why its writing did not end, why nobody can tell.
    """

    def __init__(self, folder, verify):
        self.folder, self.verify = folder, verify
        self.missing, self.short, self.bad, self.wrong = [], [], [], []
        self.bytes, self.checksums = 0, False
        self.unfinished, self.unknown = "", ""

    def is_whole(self):
        return not (self.missing or self.short or self.bad or self.wrong or self.unfinished)

    def problem(self):
        why = self.unfinished or self.unknown
        parts = self.missing + self.short + self.bad + self.wrong
        return ", ".join(([why] if why else []) + parts)

    def need(self, name, why="missing"):
        """Whether a part is there and holds anything; what is not is kept with its reason."""
        size = size_of(os.path.join(self.folder, name))
        if size is None:
            self.missing.append("%s (%s)" % (name, why))
        elif size == 0:
            self.short.append("%s (empty)" % name)
        else:
            self.bytes += size
        return bool(size)

    def look(self, name, read):
        """What `read` makes of a part that must be there; None for a bad one, which is kept."""
        if not self.need(name):
            return None
        try:
            return read(os.path.join(self.folder, name))
        except DamagedError as exc:
            self.short.append("%s (%s)" % (name, exc))
        except UnknownError as exc:
            self.unknown = "%s: %s" % (name, exc)
        return None

    def archive(self, name):
        """A file of torch.save: its directory, and the checksums of its members when asked."""
        if self.look(name, archive_directory) is None or not self.verify:
            return
        self.checksums = True
        path = os.path.join(self.folder, name)
        if not is_intact(path, 0, os.path.getsize(path)):
            self.bad.append("%s (checksum)" % name)


def size_of(path):
    """Bytes of a plain file; None where there is none, or a link."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def bytes_below(path):
    """Size of a file, or of all files in a folder and below it."""
    if not os.path.isdir(path):
        return size_of(path) or 0
    return sum(
        size_of(os.path.join(folder, name)) or 0
        for folder, _, names in os.walk(path)
        for name in names
    )


def names_in(folder, limit=200000):
    """Names in a folder, sorted; none where there is no folder."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) > limit:
                    raise ValueError("%s holds more than %d files" % (folder, limit))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found)


def read_json(path):
    """The object a JSON file holds."""
    with open(path, "rb") as stream:
        text = stream.read(JSON_LIMIT + 1)
    if len(text) > JSON_LIMIT:
        raise DamagedError("larger than %d MiB" % (JSON_LIMIT >> 20))
    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedError("no JSON") from None
    if not isinstance(value, dict):
        raise DamagedError("no JSON object")
    return value


def archive_directory(path):
    """(offset, length) of a zip's directory, which torch.save writes at the end."""
    with open(path, "rb") as stream:
        head = stream.read(4)
        if head[:1] == b"\x80":
            raise UnknownError("in torch.save's old format, which has nothing to check it by")
        if head != b"PK\x03\x04":
            raise DamagedError("not written by torch.save")
        size = stream.seek(0, os.SEEK_END)
        start = max(0, size - 65557)
        stream.seek(start)
        tail = stream.read(size - start)
        place = tail.rfind(b"PK\x05\x06")
        if place < 0 or len(tail) - place < 22:
            raise DamagedError("cut off: its directory is missing")
        length, offset = struct.unpack("<LL", tail[place + 12 : place + 20])
        end = start + place
        if 0xFFFFFFFF in (length, offset):
            length, offset, end = large_directory(stream, end)
        if length > DIRECTORY_LIMIT:
            raise DamagedError("its directory is larger than %d MiB" % (DIRECTORY_LIMIT >> 20))
        stream.seek(min(offset, size))
        if offset + length > end or stream.read(4) != b"PK\x01\x02":
            raise DamagedError("its directory is not where its end says")
    return offset, length


def large_directory(stream, end):
    """(length, offset, end) from the 64-bit records before the end of a zip."""
    stream.seek(max(0, end - 20))
    mark, _, place, _ = struct.unpack("<4sLQL", stream.read(20))
    if mark != b"PK\x06\x07" or place >= end:
        raise DamagedError("its 64-bit directory is missing")
    stream.seek(place)
    record = stream.read(56)
    if record[:4] != b"PK\x06\x06" or len(record) < 56:
        raise DamagedError("its 64-bit directory is missing")
    length, offset = struct.unpack("<QQ", record[40:56])
    return length, offset, place


def tensors_of(path):
    """Names of the tensors of a safetensors file, whose length must be what its header says."""
    with open(path, "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        head = stream.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else HEADER_LIMIT + 1
        if length > HEADER_LIMIT or 8 + length > size:
            raise DamagedError("no safetensors header")
        try:
            header = json.loads(stream.read(length).decode("utf-8"))
        except (ValueError, RecursionError):
            raise DamagedError("its header is no JSON") from None
    if not isinstance(header, dict):
        raise DamagedError("its header is no JSON object")
    header.pop("__metadata__", None)
    end = max([end_of_tensor(value) for value in header.values()] or [0])
    if 8 + length + end > size:
        raise DamagedError("cut off: %d of %d bytes" % (size, 8 + length + end))
    if 8 + length + end < size:
        raise DamagedError("longer than its header says")
    return set(header)


def end_of_tensor(value):
    offsets = value.get("data_offsets") if isinstance(value, dict) else None
    is_pair = isinstance(offsets, list) and [type(n) for n in offsets] == [int, int]
    if not is_pair or not 0 <= offsets[0] <= offsets[1]:
        raise DamagedError("a tensor of its header has no place")
    return offsets[1]


class Slice(io.RawIOBase):
    """A window of a file, so that zipfile sees one stored item as a file of its own."""

    def __init__(self, stream, offset, length):
        super(Slice, self).__init__()
        self.stream, self.offset, self.length, self.place = stream, offset, length, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, place, whence=0):
        self.place = place + (0, self.place, self.length)[whence]
        return self.place

    def tell(self):
        return self.place

    def readinto(self, buffer):
        self.stream.seek(self.offset + self.place)
        data = self.stream.read(max(0, min(len(buffer), self.length - self.place)))
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)


def is_intact(path, offset, length):
    """Whether an item's own checksums hold: torch.save writes a zip with a CRC per member."""
    with open(path, "rb") as stream:
        window = io.BufferedReader(Slice(stream, offset, length), 1 << 20)
        try:
            with zipfile.ZipFile(window) as archive:
                return archive.testzip() is None
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError):
            # Byte objects (not tensors) are stored as bare pickles, which carry no checksum.
            stream.seek(offset)
            return stream.read(1) == b"\x80" and not looks_like_zip(path, offset)


def looks_like_zip(path, offset):
    with open(path, "rb") as stream:
        stream.seek(offset)
        return stream.read(2) == b"PK"


def step_inside(path):
    """The step that a file of torch.save says it is of, by the names trainers give it.

    The pickle is read as a row of instructions, of which none is followed: a known name and the
    whole number right behind it.
    """
    archive_directory(path)
    with zipfile.ZipFile(path) as archive:
        name = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
        if name is None:
            raise DamagedError("it has no data.pkl")
        with archive.open(name) as stream:
            text = stream.read(PICKLE_LIMIT)
    found, key = {}, None
    try:
        for code, value, _ in pickletools.genops(text):
            if code.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE", "PUT"):
                continue
            if key and type(value) is int and code.name in WHOLE:
                found.setdefault(key, value)
            key = value if type(value) is str and value in STEP_KEYS else None
    except (ValueError, IndexError, UnicodeDecodeError):
        pass
    steps = [found[key] for key in STEP_KEYS if key in found and 0 <= found[key] < 10**18]
    if not steps:
        raise UnknownError("it says no step: none of %s" % ", ".join(STEP_KEYS))
    return steps[0]
