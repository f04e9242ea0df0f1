"""RUNS ON THE NODE. Lists checkpoints and says which are whole; changes nothing.

Whole means: every part that `.metadata` names is there, is long enough and, when asked, undamaged.
The metadata is a pickle written by the job; it is read with stubs for every class, so that none of
its code runs.
"""

import io
import json
import os
import pickle
import re
import signal
import stat
import sys
import time
import zipfile


# Every probe is one file, so this block is the same in all of them; a test compares.
class Readings(object):
    """Values read so far, and why others are missing."""

    def __init__(self):
        self.rows = []
        self.notes = []

    def add(self, name, subject, value):
        self.rows.append({"name": name, "subject": subject, "value": value})

    def note(self, text):
        self.notes.append(str(text)[:400])

    def read(self, name, subject, call, *arguments):
        """Add what the call returns and return it; a failure becomes a note, never a number."""
        try:
            value = call(*arguments)
        except Exception as exc:
            unsupported = getattr(exc, "value", None) in (3, 13)  # not supported by part, by driver
            shape = "not supported: %s %s" if unsupported else "%s %s: %s"
            self.note(shape % ((name, subject) if unsupported else (name, subject, exc)))
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        self.add(name, subject, value)
        return value


class OutOfTime(BaseException):
    """The probe's own deadline; no `except Exception` may catch it as a failed reading."""


def out_of_time(signum, frame):
    raise OutOfTime()


def main(measure):
    """Read parameters, measure within the deadline, print what was read so far whatever happens."""
    parameters = json.loads(sys.stdin.read() or "{}")
    readings = Readings()
    status = 0
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, float(parameters.get("deadline_s", 10)) * 0.9))
    try:
        status = measure(readings, parameters) or 0
    except OutOfTime:
        readings.note("deadline_s reached")
        status = 1
    except Exception as exc:
        readings.note("%s: %s" % (type(exc).__name__, exc))
        status = 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    json.dump({"measurements": readings.rows, "notes": readings.notes}, sys.stdout)
    return status


METADATA_LIMIT = 256 << 20
STEP = re.compile(r"step-(\d{1,18})$")


class Stub(object):
    """Stands for every object of a pickle: keeps what it was given, does nothing."""

    def __init__(self, *arguments, **named):
        self.arguments = arguments

    def __setstate__(self, state):
        self.state = state

    def __call__(self, *arguments):
        return Stub(*arguments)

    def __hash__(self):
        return id(self)

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def __setitem__(self, key, value):
        pass


class MetadataIndex(Stub):
    """One item of the checkpoint: a key of storage_data, so it must be hashable by content."""

    def __setstate__(self, state):
        self.__dict__.update(state if isinstance(state, dict) else {})


class StorageInfo(Stub):
    """Where an item lies: file, offset, length."""

    def __setstate__(self, state):
        self.__dict__.update(state if isinstance(state, dict) else {})


class Metadata(Stub):
    """The root object."""

    def __setstate__(self, state):
        self.__dict__.update(state if isinstance(state, dict) else {})


KNOWN = {
    ("torch.distributed.checkpoint.metadata", "Metadata"): Metadata,
    ("torch.distributed.checkpoint.metadata", "MetadataIndex"): MetadataIndex,
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): StorageInfo,
}


# Plain pickles of enumerations and sets name these; as stubs they do nothing.
INERT = {("builtins", name) for name in ("getattr", "set", "frozenset", "slice", "object")}


class InertUnpickler(pickle.Unpickler):
    """Gives stubs for every class and function; nothing the pickle names is ever imported."""

    def find_class(self, module, name):
        if (module, name) in KNOWN:
            return KNOWN[module, name]
        if (module, name) in (("collections", "OrderedDict"), ("builtins", "dict")):
            return dict
        if (module, name) in INERT:
            return Stub
        if module in ("builtins", "__builtin__", "os", "posix", "subprocess", "sys", "nt"):
            raise pickle.UnpicklingError("the metadata names %s.%s" % (module, name))
        return Stub

    def persistent_load(self, pid):
        return Stub()


def read_parts(folder):
    """[(item, file, offset, length)] of everything the metadata says is stored."""
    path = os.path.join(folder, ".metadata")
    if os.path.getsize(path) > METADATA_LIMIT:
        raise ValueError("%s is larger than %d MiB" % (path, METADATA_LIMIT >> 20))
    with open(path, "rb") as stream:
        metadata = InertUnpickler(stream).load()
    stored = getattr(metadata, "storage_data", None)
    if not isinstance(metadata, Metadata) or not isinstance(stored, dict):
        raise TypeError("%s is no checkpoint metadata" % path)
    return [read_part(index, info) for index, info in stored.items()]


def read_part(index, info):
    """One stored item; anything but plain text and numbers is refused, not converted."""
    item = getattr(index, "fqn", None)
    name, place = getattr(info, "relative_path", None), getattr(info, "offset", None)
    length = getattr(info, "length", None)
    if not (type(item) is type(name) is str and type(place) is type(length) is int):
        raise TypeError("an item of the metadata has no name, file, offset or length")
    return item[:300], name, place, length


def inspect(folder, verify):
    """What is missing, short or damaged in one checkpoint directory."""
    parts = read_parts(folder)
    sizes, missing, short, bad = {}, set(), set(), []
    for item, name, offset, length in parts:
        if os.path.basename(name) != name or offset < 0 or length < 0:
            raise ValueError("a part lies outside the checkpoint: %r" % name[:100])
        if name not in sizes:
            sizes[name] = size_of(os.path.join(folder, name))
        if sizes[name] is None:
            missing.add(name)
        elif offset + length > sizes[name]:
            short.add(name)
        elif verify and not is_intact(os.path.join(folder, name), offset, length):
            bad.append(item)
    total = sum(size or 0 for size in sizes.values())
    return {"missing": sorted(missing), "short": sorted(short), "bad": bad, "bytes": total}


def size_of(path):
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


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


def measure(readings, parameters):
    root = parameters.get("checkpoint_dir")
    if not root:
        readings.note("checkpoint_dir is not known")
        return 1
    try:
        names = [name for name in os.listdir(root) if STEP.match(name)]
    except OSError as exc:
        readings.note("checkpoint_dir: %s" % exc)
        return 1
    names.sort(key=lambda name: int(STEP.match(name).group(1)))
    newest = names[-int(parameters.get("newest", 8)) :]
    wanted = [name for name in names if int(STEP.match(name).group(1)) in steps(parameters)]
    readings.add("job.checkpoint.count", "", len(names))
    for name in reversed(wanted or newest):
        measure_one(readings, root, name, bool(parameters.get("verify")))
    return 0


def steps(parameters):
    return [int(step) for step in parameters.get("steps") or []]


def measure_one(readings, root, name, verify):
    subject, folder = "ckpt:" + name, os.path.join(root, name)
    readings.add("job.checkpoint.step", subject, int(STEP.match(name).group(1)))
    if not os.path.exists(os.path.join(folder, ".metadata")):
        readings.add("job.checkpoint.complete", subject, False)
        readings.read("job.checkpoint.age_s", subject, age_s, folder)
        return
    readings.read("job.checkpoint.age_s", subject, age_s, os.path.join(folder, ".metadata"))
    try:
        found = inspect(folder, verify)
    except Exception as exc:
        # Metadata nobody can read makes the checkpoint unusable: that is a reading, not silence.
        readings.add("job.checkpoint.complete", subject, False)
        readings.add("job.checkpoint.problem", subject, ("metadata: %s" % exc)[:300])
        return
    whole = not found["missing"] and not found["short"] and not found["bad"]
    readings.add("job.checkpoint.complete", subject, whole)
    readings.add("job.checkpoint.missing_files", subject, len(found["missing"]))
    readings.add("job.checkpoint.short_files", subject, len(found["short"]))
    if verify:
        readings.add("job.checkpoint.bad_items", subject, len(found["bad"]))
    readings.add("job.checkpoint.bytes", subject, found["bytes"])
    broken = found["missing"] + found["short"] + found["bad"]
    if broken:
        readings.add("job.checkpoint.problem", subject, ", ".join(broken)[:300])


def age_s(path):
    return max(0.0, time.time() - os.path.getmtime(path))


if __name__ == "__main__":
    sys.exit(main(measure))
