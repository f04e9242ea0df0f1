"""RUNS ON THE NODE. Reads throttling, offline processors and load of the host; changes nothing."""

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


def listed(path):
    """How many processors a list such as `0-3,8` names."""
    with open(path) as stream:
        text = stream.read().strip()
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def throttles(root):
    """Times any processor was throttled by heat since boot; None where the kernel counts none."""
    paths = glob.glob(os.path.join(root, "cpu[0-9]*", "thermal_throttle", "core_throttle_count"))
    counts = []
    for path in paths:
        with open(path) as stream:
            counts.append(int(stream.read()))
    return sum(counts) if counts else None


def measure(readings, parameters):
    root = parameters.get("sysfs") or "/sys/devices/system/cpu"
    online = readings.read("host.cpu.online_count", "", listed, os.path.join(root, "online"))
    present = readings.read("host.cpu.present_count", "", listed, os.path.join(root, "present"))
    if online is not None and present is not None:
        readings.add("host.cpu.offline_count", "", present - online)
    count = throttles(root)
    if count is not None:
        readings.add("host.cpu.throttle_count", "", count)
    governor = os.path.join(root, "cpu0", "cpufreq", "scaling_governor")
    if os.path.exists(governor):
        with open(governor) as stream:
            readings.add("host.cpu.governor", "", stream.read().strip())
    if online:
        readings.add("host.cpu.load_per_cpu", "", os.getloadavg()[0] / online)


if __name__ == "__main__":
    sys.exit(main(measure))
