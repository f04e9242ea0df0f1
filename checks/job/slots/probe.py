"""RUNS ON THE NODE. Reads which steps of a job are kept in this node's memory; changes nothing.

Slots are written while this reads: the state word before and after a header tells whether it held.
"""

import json
import os
import signal
import stat
import struct
import sys
import zlib

PAGE = 4096
BLOCK = 4 << 20
MAGIC, VERSION = int.from_bytes(b"brctlslt", "little"), 1
COPIED, CHECKED = 2, 3
JSON_AT = 24
FILES_LIMIT = 4096
NEVER_LIMIT = 1 << 16
SHARED_MEMORY = "/dev/shm/"  # noqa: S108  # where logind removes files; nothing is written there
LOGIND = ("/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf")
LAST_SYSTEM_USER = 999


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
    sys.stdout.write(json.dumps({"measurements": readings.rows, "notes": readings.notes}))
    return status


class UnreadableError(Exception):
    """A slot, or its file, that cannot be used; says why."""


def measure(readings, parameters):
    root = parameters.get("directory")
    if not root:
        readings.note("the job keeps no steps in memory: its job.yaml names no checkpoint.slots")
        return 1
    try:
        names = sorted(n for n in os.listdir(root) if n.endswith((".own", ".peer")))
        owner = os.stat(root).st_uid
    except FileNotFoundError:
        readings.add("job.slots.files", "", 0)
        return 0
    except OSError as exc:
        readings.note("slots: %s" % exc)
        return 1
    readings.add("job.slots.files", "", len(names))
    if len(names) > FILES_LIMIT:
        readings.note("%d files of slots, the first %d were read" % (len(names), FILES_LIMIT))
    unreadable = 0
    for name in names[:FILES_LIMIT]:
        unreadable += measure_file(readings, parameters, root, name)
    readings.add("job.slots.unreadable", "", unreadable)
    readings.read("job.slots.free_bytes", "", free_bytes, root)
    measure_never(readings, os.path.join(root, "never.json"))
    if os.path.realpath(root).startswith(SHARED_MEMORY):
        readings.read("job.slots.remove_ipc", "", removed_at_logout, owner, LOGIND)
    return 0


def measure_file(readings, parameters, root, name):
    """Number of slots of a file that nobody can use."""
    try:
        with open_file(os.path.join(root, name)) as stream:
            capacity = capacity_of(stream)
            return sum(
                measure_slot(readings, parameters, stream, name, index, capacity)
                for index in range(2)
            )
    except (OSError, UnreadableError) as exc:
        readings.note("%s: %s" % (name, exc))
        return 1


def open_file(path):
    """A plain file only: a pipe would never answer, a link may lead anywhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError("no plain file")
    return os.fdopen(descriptor, "rb", buffering=0)


def measure_slot(readings, parameters, stream, name, index, capacity):
    start = PAGE + index * (PAGE + checksum_bytes(capacity) + capacity)
    page = read_at(stream, start, PAGE)
    if struct.unpack_from("<Q", page)[0] not in (COPIED, CHECKED):
        return 0
    try:
        header = header_of(page, capacity, parameters)
        if read_at(stream, start, 8) != page[:8]:
            return 0
        report(readings, parameters, stream, (name, index), (start, page, header, capacity))
    except UnreadableError as exc:
        readings.note("%s, slot %d: %s" % (name, index, exc))
        return 1
    return 0


def report(readings, parameters, stream, place, slot):
    start, page, header, capacity = slot
    subject = "slot:%s:%d" % place
    wanted = parameters.get("steps") or []
    if parameters.get("verify") and (not wanted or header["step"] in wanted):
        sound = is_sound(stream, start, page, header["payload_bytes"], capacity)
        if sound is not None:
            readings.add("job.slots.sound", subject, sound)
    readings.add("job.slots.rank", subject, header["rank"])
    readings.add("job.slots.own", subject, place[0].endswith(".own"))
    readings.add("job.slots.attempt", subject, header["attempt"])
    readings.add("job.slots.step", subject, header["step"])
    readings.add("job.slots.bytes", subject, header["payload_bytes"])


def capacity_of(stream):
    """Bytes of payload a slot of this file can hold."""
    magic, version, capacity = struct.unpack_from("<3Q", read_at(stream, 0, PAGE))
    if magic != MAGIC:
        raise UnreadableError("no file of slots")
    if version != VERSION:
        raise UnreadableError("version %d of the file, %d can be read" % (version, VERSION))
    size, expected = os.fstat(stream.fileno()).st_size, file_bytes(capacity)
    if capacity % PAGE or size != expected:
        raise UnreadableError("%d bytes instead of %d: cut" % (size, expected))
    return capacity


def header_of(page, capacity, parameters):
    """The header, with numbers that fit; it may have been written by anybody."""
    word = struct.unpack_from("<Q", page, 16)[0]
    length, crc = word & 0xFFFFFFFF, word >> 32
    text = page[JSON_AT : JSON_AT + min(length, PAGE - JSON_AT)]
    if zlib.crc32(text) != crc:
        raise UnreadableError("the header's checksum differs")
    try:
        header = json.loads(text.decode())
    except (ValueError, RecursionError) as exc:
        raise UnreadableError("no header of a slot") from exc
    names = ("attempt", "rank", "world_size", "step", "payload_bytes")
    numbers = [header.get(name) for name in names] if isinstance(header, dict) else [None]
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers):
        raise UnreadableError("a number of the header is none")
    if header["payload_bytes"] > capacity:
        raise UnreadableError("%d bytes do not fit into %d" % (header["payload_bytes"], capacity))
    if header.get("job") != parameters.get("job"):
        raise UnreadableError("of job %s" % str(header.get("job"))[:80])
    if header["world_size"] != parameters.get("world_size"):
        raise UnreadableError("of a job of %d ranks" % header["world_size"])
    return header


def is_sound(stream, start, page, size, capacity):
    """Whether every block has its checksum; None where nobody has computed them yet."""
    if struct.unpack_from("<Q", page)[0] != CHECKED:
        return None
    sums = read_at(stream, start + PAGE, 4 * block_count(size))
    if zlib.crc32(sums) != struct.unpack_from("<Q", page, 8)[0]:
        return False
    at = start + PAGE + checksum_bytes(capacity)
    good = all(
        zlib.crc32(read_at(stream, at + done, min(BLOCK, size - done)))
        == struct.unpack_from("<I", sums, 4 * number)[0]
        for number, done in enumerate(range(0, size, BLOCK))
    )
    # A slot that was written meanwhile is not a damaged one.
    return good if good or read_at(stream, start, PAGE) == page else None


def read_at(stream, offset, size):
    data = os.pread(stream.fileno(), size, offset)
    if len(data) < size:
        raise UnreadableError("%d bytes at %d, %d expected" % (len(data), offset, size))
    return data


def block_count(size):
    return -(-size // BLOCK)


def checksum_bytes(capacity):
    return -(-4 * block_count(capacity) // PAGE) * PAGE


def file_bytes(capacity):
    return PAGE + 2 * (PAGE + checksum_bytes(capacity) + capacity)


def free_bytes(root):
    found = os.statvfs(root)
    return found.f_bavail * found.f_frsize


def measure_never(readings, path):
    """Steps that the job's own ranks struck off."""
    if not os.path.exists(path):
        return
    try:
        with open(path, "rb") as stream:
            listed = json.loads(stream.read(NEVER_LIMIT).decode())
        for attempt, step in listed[:64]:
            saved = "%d-%d" % (attempt, step)
            readings.add("job.slots.never", "never:" + saved, saved)
    except (OSError, ValueError, TypeError, RecursionError) as exc:
        readings.note("never.json: %s" % exc)


def removed_at_logout(owner, paths, systemd="/run/systemd/system"):
    """Whether logind removes this user's files of shared memory; those of system users stay."""
    if owner <= LAST_SYSTEM_USER or not os.path.isdir(systemd):
        return False
    value = "yes"
    for path in config_files(paths):
        with open(path) as stream:
            for line in stream:
                key, _, text = line.strip().partition("=")
                if key.strip() == "RemoveIPC":
                    value = text.strip().lower()
    return value in ("yes", "true", "on", "1")


def config_files(paths):
    """The main files, then what is dropped in beside them, in the order logind reads them."""
    for path in paths:
        if os.path.exists(path):
            yield path
    for path in paths:
        folder = path + ".d"
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                if name.endswith(".conf"):
                    yield os.path.join(folder, name)


if __name__ == "__main__":
    sys.exit(main(measure))
