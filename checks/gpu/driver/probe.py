"""RUNS ON THE NODE. Reads driver version from the kernel and from the library; changes nothing."""

import json
import os
import re
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


VERSION = re.compile(r"\b(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\b")


def kernel_version(path):
    """Version of the loaded kernel module, from its own first line."""
    with open(path) as stream:
        match = VERSION.search(stream.readline())
    if match is None:
        raise ValueError("no version in %s" % path)
    return match.group(1)


def measure(readings, parameters):
    path = parameters.get("module_version") or "/proc/driver/nvidia/version"
    if os.path.exists(path):
        readings.read("gpu.driver.module_version", "", kernel_version, path)
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception as exc:
        return failed(readings, parameters, exc)
    readings.add("gpu.driver.mismatch", "", False)
    readings.read("gpu.driver.library_version", "", pynvml.nvmlSystemGetDriverVersion)
    pynvml.nvmlShutdown()
    return 0


def failed(readings, parameters, exc):
    """NVML's own error says when library and kernel module are of different versions."""
    if getattr(exc, "value", None) == 18:  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
        readings.add("gpu.driver.mismatch", "", True)
        return 0
    if parameters.get("expected_gpus") == 0:
        readings.note("not supported: everything, the node has no GPU (%s)" % exc)
        return 0
    readings.note("NVML: %s" % exc)
    return 1


if __name__ == "__main__":
    sys.exit(main(measure))
