"""RUNS ON THE NODE. Reads versions of system, driver, firmware and libraries; changes nothing."""

import glob
import json
import os
import signal
import subprocess
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


def first_line(path):
    with open(path) as stream:
        return stream.readline().strip()


def system(path="/etc/os-release"):
    with open(path) as stream:
        rows = dict(line.rstrip().partition("=")[::2] for line in stream)
    return rows["PRETTY_NAME"].strip('"')


def libraries(python):
    """Versions of packages, asked of the interpreter that trains; none is imported."""
    code = (
        "import importlib.metadata as m\n"
        "for n in ('torch', 'nvidia-nccl-cu12', 'nvidia-nccl-cu13'):\n"
        "    try: print(n, m.version(n))\n"
        "    except m.PackageNotFoundError: pass\n"
    )
    done = subprocess.run(
        [python, "-I", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=5,
        check=True,
    )  # fmt: skip
    return dict(line.split() for line in done.stdout.decode().splitlines())


def measure(readings, parameters):
    readings.add("host.versions.kernel", "", os.uname().release)
    readings.read("host.versions.system", "", system)
    driver = "/sys/module/nvidia/version"
    if os.path.exists(driver):
        readings.read("host.versions.driver", "", first_line, driver)
    for path in sorted(glob.glob("/sys/class/infiniband/*/fw_ver")):
        nic = "nic:" + path.split("/")[-2]
        readings.read("host.versions.nic_firmware", nic, first_line, path)
    if parameters.get("torch_python"):
        try:
            found = libraries(parameters["torch_python"])
        except (OSError, subprocess.SubprocessError, ValueError) as exc:
            readings.note("host.versions.torch: %s" % exc)
            return
        if "torch" in found:
            readings.add("host.versions.torch", "", found.pop("torch"))
        for name in sorted(found):
            readings.add("host.versions.nccl", "", found[name])


if __name__ == "__main__":
    sys.exit(main(measure))
