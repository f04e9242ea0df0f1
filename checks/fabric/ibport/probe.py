"""RUNS ON THE NODE. Reads state, rate and error counters of every RDMA port; changes nothing."""

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


COUNTERS = (
    "link_downed", "symbol_error", "link_error_recovery", "port_rcv_errors", "port_xmit_discards",
    "local_link_integrity_errors", "port_xmit_data", "port_rcv_data",
)  # fmt: skip
HW_COUNTERS = (
    "local_ack_timeout_err", "packet_seq_err", "out_of_sequence", "rnr_nak_retry_err",
    "roce_adp_retrans",
)  # fmt: skip


def text(path):
    with open(path) as stream:
        return stream.read(4096).strip()


def number(path):
    return int(text(path))


def word(path):
    """`4: ACTIVE` without its number."""
    return text(path).split(":")[-1].strip()


def gbit_per_s(path):
    """`400 Gb/sec (4X NDR)` as a number."""
    return float(text(path).split()[0])


def measure(readings, parameters):
    root = parameters.get("sysfs") or "/sys/class/infiniband"
    ports = sorted(glob.glob(os.path.join(root, "*", "ports", "*")))
    if not ports:
        readings.note("not supported: everything, the node has no RDMA port")
    for port in ports:
        device, index = port.split(os.sep)[-3], port.split(os.sep)[-1]
        subject = "nic:" + device + ("" if index == "1" else "/" + index)
        readings.read("fabric.ibport.state", subject, word, os.path.join(port, "state"))
        readings.read("fabric.ibport.physical", subject, word, os.path.join(port, "phys_state"))
        readings.read("fabric.ibport.gbit_per_s", subject, gbit_per_s, os.path.join(port, "rate"))
        for folder, names in (("counters", COUNTERS), ("hw_counters", HW_COUNTERS)):
            for name in names:
                path = os.path.join(port, folder, name)
                if os.path.exists(path):
                    readings.read("fabric.ibport." + name, subject, number, path)


if __name__ == "__main__":
    sys.exit(main(measure))
