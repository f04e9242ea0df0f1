"""RUNS ON THE NODE. Writes, reads back and removes one file in the checkpoint directory."""

import hashlib
import json
import os
import signal
import sys
import time

from checks._checkpoints.contents import bytes_below
from checks._checkpoints.layouts import saves_of


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


def newest_bytes(parameters):
    """Size of the newest finished checkpoint: what the next save needs."""
    saves = saves_of(parameters)
    done = [save for save in saves.listed if saves.has_end(save)]
    return bytes_below(done[-1].path) if done else None


def pattern(size):
    """Bytes no file system can shrink to nothing, the same every time."""
    block = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(1 << 12))
    return block * max(1, size // len(block))


def timed(readings, name, size, call):
    start = time.monotonic()
    result = call()
    readings.add(name, "", size / max(1e-9, time.monotonic() - start) / 1e9)
    return result


def write_file(path, data):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def read_file(path):
    descriptor = os.open(path, os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as stream:
        # Otherwise the answer comes from memory and says nothing about the storage.
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return stream.read()


def measure(readings, parameters):
    root = parameters.get("checkpoint_dir")
    if not root:
        readings.note("checkpoint_dir is not known")
        return 1
    found = os.statvfs(root)
    readings.add("storage.checkpoint.free_bytes", "", found.f_bavail * found.f_frsize)
    try:
        needed = newest_bytes(parameters)
    except Exception as exc:
        readings.note("size of the newest checkpoint: %s" % exc)
        needed = None
    if needed is not None:
        readings.add("storage.checkpoint.next_save_bytes", "", needed)
    name = ".brctl-probe-%s-%d" % (os.uname().nodename, os.getpid())
    data = pattern(int(parameters.get("bytes", 16 << 20)))
    return write_and_read(readings, os.path.join(root, name), data)


def write_and_read(readings, path, data):
    try:
        timed(
            readings, "storage.checkpoint.write_gb_per_s", len(data), lambda: write_file(path, data)
        )
        readings.add("storage.checkpoint.writable", "", True)
        back = timed(
            readings, "storage.checkpoint.read_gb_per_s", len(data), lambda: read_file(path)
        )
        readings.add("storage.checkpoint.equal", "", back == data)
    except OSError as exc:
        readings.add("storage.checkpoint.writable", "", False)
        readings.add("storage.checkpoint.problem", "", str(exc))
    finally:
        if os.path.exists(path):
            os.unlink(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(measure))
