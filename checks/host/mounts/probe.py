"""RUNS ON THE NODE. Reads which shared file systems are mounted and whether they answer.

Each is asked in a child that can be abandoned: one that hangs must not hang us. Changes nothing.
"""

import json
import os
import signal
import sys
import time


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


SHARED = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "wekafs", "cifs", "fuse", "pvfs2")


def mounted(path):
    """(mount point, type) of every mount."""
    with open(path) as stream:
        rows = (line.split() for line in stream)
        return [(row[1].replace("\\040", " "), row[2]) for row in rows if len(row) >= 3]


def is_shared(kind):
    return kind.split(".")[0] in SHARED


def answers(path, limit_s):
    """Whether the file system answers in time; a child that hangs is left to the kernel."""
    child = os.fork()
    if child == 0:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.statvfs(path)
            os.listdir(path)
        except Exception:
            os._exit(1)
        os._exit(0)
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.WEXITSTATUS(status) == 0 if os.WIFEXITED(status) else False
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return None


def measure(readings, parameters):
    mounts = dict(mounted(parameters.get("mounts") or "/proc/self/mounts"))
    wanted = list(parameters.get("expected") or [])
    shared = sorted(path for path, kind in mounts.items() if is_shared(kind))
    for path in sorted(set(wanted)):
        readings.add("host.mounts.present", "disk:" + path, path in mounts)
    checked = sorted(set(shared) | {path for path in wanted if path in mounts})
    for path in checked[:32]:
        answered = answers(path, float(parameters.get("hang_after_s", 2)))
        readings.add("host.mounts.hangs", "disk:" + path, answered is None)
        if answered is False:
            readings.add("host.mounts.fails", "disk:" + path, True)
    if not checked and not wanted:
        readings.note("not supported: everything, no shared file system is mounted")


if __name__ == "__main__":
    sys.exit(main(measure))
