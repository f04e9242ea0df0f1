"""RUNS ON THE NODE. Reads resource limits of a rank, or of this session; changes nothing."""

import json
import os
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


ROWS = {
    "Max open files": "host.limits.open_files",
    "Max locked memory": "host.limits.locked_bytes",
    "Max processes": "host.limits.processes",
}


def parse(text):
    """Soft limits of /proc/PID/limits; `unlimited` is -1."""
    found = {}
    for line in text.splitlines():
        for title, name in ROWS.items():
            if line.startswith(title):
                soft = line[len(title) :].split()[0]
                found[name] = -1 if soft == "unlimited" else int(soft)
    return found


def rank_pid(parameters):
    """Process of the first rank here that is known; None without one."""
    for rank in parameters.get("ranks") or []:
        path = os.path.join(parameters.get("log_dir") or "", "rank-%05d.process.json" % int(rank))
        try:
            with open(path) as stream:
                return int(json.loads(stream.read(65536))["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def measure(readings, parameters):
    found = None
    pid = rank_pid(parameters)
    if pid is not None:
        try:
            found = limits_of(pid)
        except OSError:
            pid = None  # that rank has ended; the session's own limits are the next best
    if found is None:
        found = limits_of("self")
    readings.add("host.limits.of_a_rank", "", pid is not None)
    for name in sorted(found):
        readings.add(name, "", found[name])


def limits_of(pid):
    with open("/proc/%s/limits" % pid) as stream:
        return parse(stream.read())


if __name__ == "__main__":
    sys.exit(main(measure))
