"""RUNS ON THE NODE. Reads carrier, rate and errors of the Ethernet links; changes nothing."""

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


COUNTERS = ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_crc_errors")


def text(path):
    with open(path) as stream:
        return stream.read(256).strip()


def number(path):
    return int(text(path))


def is_up(path):
    return text(path) == "1"


def default_route(path="/proc/net/route"):
    """Interfaces that carry the default route; a virtual one counts when it does."""
    with open(path) as stream:
        rows = [line.split() for line in stream.readlines()[1:]]
    return {row[0] for row in rows if len(row) > 1 and row[1] == "00000000"}


def measure(readings, parameters):
    root = parameters.get("sysfs") or "/sys/class/net"
    try:
        routed = default_route()
    except OSError:
        routed = set()
    found = 0
    for name in sorted(os.listdir(root)):
        base = os.path.join(root, name)
        if not os.path.exists(os.path.join(base, "device")) and name not in routed:
            continue
        if not number_or_zero(os.path.join(base, "flags")) & 1:  # IFF_UP: switched off on purpose
            continue
        found += 1
        measure_link(readings, "nic:" + name, base)
    if not found:
        readings.note("not supported: everything, no Ethernet link is switched on")


def number_or_zero(path):
    try:
        return int(text(path), 0)
    except (OSError, ValueError):
        return 0


def measure_link(readings, subject, base):
    readings.read("fabric.eth.carrier", subject, is_up, os.path.join(base, "carrier"))
    readings.read(
        "fabric.eth.carrier_changes", subject, number, os.path.join(base, "carrier_changes")
    )
    readings.read("fabric.eth.mtu", subject, number, os.path.join(base, "mtu"))
    try:
        speed = number(os.path.join(base, "speed"))
    except (OSError, ValueError):
        speed = -1  # virtual links have none
    if speed > 0:
        readings.add("fabric.eth.gbit_per_s", subject, speed / 1000.0)
    for name in COUNTERS:
        path = os.path.join(base, "statistics", name)
        if os.path.exists(path):
            readings.read("fabric.eth." + name, subject, number, path)


if __name__ == "__main__":
    sys.exit(main(measure))
