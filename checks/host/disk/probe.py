"""RUNS ON THE NODE. Reads space and state of the file systems a job needs; changes nothing.

Each path is looked at in a child that can be abandoned: a file system that hangs must not hang us.
"""

import json
import os
import select
import signal
import sys


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


def look(path):
    """Free space of one path. Runs in a child: a file system that hangs must not hang us."""
    found = os.statvfs(path)
    total = found.f_blocks * found.f_frsize
    # Free for the job's user: root's reserve does not help a checkpoint.
    result = {
        "host.disk.free_bytes": found.f_bavail * found.f_frsize,
        "host.disk.total_bytes": total,
        "host.disk.read_only": bool(found.f_flag & os.ST_RDONLY),
    }
    if os.path.isdir(path):
        result["host.disk.writable"] = os.access(path, os.W_OK | os.X_OK)
    if total:
        result["host.disk.free_pct"] = 100.0 * found.f_bavail * found.f_frsize / total
    if found.f_files:
        result["host.disk.free_inodes_pct"] = 100.0 * found.f_favail / found.f_files
    return result


def ask_child(path, limit_s):
    """The child's answer, or None when it did not answer in time (it is left to the kernel)."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 0
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.write(write_end, json.dumps(look(path)).encode())
        except Exception as exc:
            os.write(write_end, json.dumps({"error": str(exc)}).encode())
            status = 1
        os._exit(status)
    os.close(write_end)
    ready, _, _ = select.select([read_end], [], [], limit_s)
    answer = os.read(read_end, 65536) if ready else b""
    os.close(read_end)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0 if ready else os.WNOHANG)
    return json.loads(answer.decode()) if answer else None


def measure(readings, parameters):
    paths = [
        parameters.get(name) for name in ("checkpoint_dir", "log_dir", "progress_dir", "scratch")
    ]
    wanted = [path for path in paths if path] + list(parameters.get("paths") or [])
    if not wanted:
        readings.note("no path was named to look at")
        return 1
    limit_s = float(parameters.get("hang_after_s", 3))
    for path in sorted(set(wanted)):
        subject = "disk:" + path
        answer = ask_child(path, limit_s)
        readings.add("host.disk.hangs", subject, answer is None)
        if answer is None:
            continue
        if "error" in answer:
            readings.note("%s: %s" % (subject, answer["error"]))
            continue
        for name in sorted(answer):
            readings.add(name, subject, answer[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(measure))
