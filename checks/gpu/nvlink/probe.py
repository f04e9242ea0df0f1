"""RUNS ON THE NODE. Reads the state and error counters of every NVLink; changes nothing."""

import json
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


def with_nvml(measure):
    """Open NVML for a measurement; without the library only a node without GPUs is fine."""

    def opened(readings, parameters):
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception as exc:
            if parameters.get("expected_gpus") == 0:
                readings.note("not supported: everything, the node has no GPU (%s)" % exc)
                return 0
            readings.note("NVML: %s" % exc)
            return 1
        try:
            return measure(readings, parameters, pynvml)
        finally:
            pynvml.nvmlShutdown()

    return opened


def handles(readings, nvml):
    """(subject, handle) of every GPU that answers; one that does not is a note."""
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = nvml.nvmlDeviceGetUUID(handle)
        except Exception as exc:
            readings.note("GPU index %d: %s" % (index, exc))
            continue
        yield "gpu:" + (uuid.decode() if isinstance(uuid, bytes) else uuid), handle


COUNTERS = (
    ("gpu.nvlink.crc_flit_errors", "NVML_NVLINK_ERROR_DL_CRC_FLIT"),
    ("gpu.nvlink.replays", "NVML_NVLINK_ERROR_DL_REPLAY"),
    ("gpu.nvlink.recoveries", "NVML_NVLINK_ERROR_DL_RECOVERY"),
)


def measure(readings, parameters, nvml):
    for subject, handle in handles(readings, nvml):
        links = list(states(readings, nvml, subject, handle))
        if not links:
            continue
        readings.add("gpu.nvlink.count", subject, len(links))
        readings.add("gpu.nvlink.active_count", subject, sum(links))


def states(readings, nvml, subject, handle):
    """Whether each link is up, in order; stops at the first link the part does not have."""
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            active = bool(nvml.nvmlDeviceGetNvLinkState(handle, link))
        except Exception as exc:
            if getattr(exc, "value", None) not in (2, 3):
                readings.note("gpu.nvlink.active %s link %d: %s" % (subject, link, exc))
            elif link == 0:
                readings.note("not supported: gpu.nvlink %s" % subject)
            return
        name = "link:%s/%d" % (subject[4:], link)
        readings.add("gpu.nvlink.active", name, active)
        measure_errors(readings, nvml, name, handle, link)
        yield active


def measure_errors(readings, nvml, name, handle, link):
    for measurement, counter in COUNTERS:
        number = getattr(nvml, counter)
        call = nvml.nvmlDeviceGetNvLinkErrorCounter
        readings.read(measurement, name, call, handle, link, number)


if __name__ == "__main__":
    sys.exit(main(with_nvml(measure)))
