"""RUNS ON THE NODE. Reads the node's clock and who disciplines it; changes nothing."""

import ctypes
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


def kernel_sync():
    """Whether the kernel's clock is disciplined, and its estimated error in seconds (adjtimex)."""

    class Timex(ctypes.Structure):
        _fields_ = [
            ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long),
            ("maxerror", ctypes.c_long), ("esterror", ctypes.c_long), ("status", ctypes.c_int),
            ("rest", ctypes.c_byte * 256),
        ]  # fmt: skip

    buffer = Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(buffer))
    if state < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    unsynchronised = 0x40  # STA_UNSYNC, linux/timex.h
    return not buffer.status & unsynchronised, buffer.maxerror / 1e6


def measure(readings, parameters):
    try:
        synchronised, error_s = kernel_sync()
    except Exception as exc:
        readings.note("host.clock.synchronised: %s" % exc)
    else:
        readings.add("host.clock.synchronised", "", synchronised)
        readings.add("host.clock.max_error_s", "", error_s)
    readings.add("host.clock.unix_s", "", time.time())


if __name__ == "__main__":
    sys.exit(main(measure))
