"""RUNS ON THE NODE. Reads free memory and memory error counters of the host; changes nothing."""

import glob
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


def meminfo(path="/proc/meminfo"):
    """Bytes by name."""
    with open(path) as stream:
        rows = (line.split() for line in stream)
        return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) >= 2}


def total(root, name):
    """Sum of one EDAC counter over all memory controllers; None where the kernel counts none."""
    paths = glob.glob(os.path.join(root, "mc*", name))
    counts = []
    for path in paths:
        with open(path) as stream:
            counts.append(int(stream.read()))
    return sum(counts) if counts else None


def measure(readings, parameters):
    found = meminfo(parameters.get("meminfo") or "/proc/meminfo")
    readings.add("host.memory.total_bytes", "", found["MemTotal"])
    readings.add("host.memory.available_bytes", "", found["MemAvailable"])
    readings.add("host.memory.available_pct", "", 100.0 * found["MemAvailable"] / found["MemTotal"])
    root = parameters.get("edac") or "/sys/devices/system/edac/mc"
    for name, counter in (
        ("host.memory.corrected_errors", "ce_count"),
        ("host.memory.uncorrected_errors", "ue_count"),
    ):
        count = total(root, counter)
        if count is not None:
            readings.add(name, "", count)


if __name__ == "__main__":
    sys.exit(main(measure))
