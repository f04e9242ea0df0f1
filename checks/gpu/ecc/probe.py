"""RUNS ON THE NODE. Reads ECC counters and row remapping of every GPU; changes nothing."""

import ctypes
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


def measure(readings, parameters, nvml):
    for subject, handle in handles(readings, nvml):
        measure_totals(readings, nvml, subject, handle)
        measure_places(readings, nvml, subject, handle)
        measure_repairs(readings, nvml, subject, handle)


def measure_totals(readings, nvml, subject, handle):
    try:
        modes = nvml.nvmlDeviceGetEccMode(handle)
    except Exception as exc:
        readings.note("gpu.ecc.enabled %s: %s" % (subject, exc))
    else:
        readings.add("gpu.ecc.enabled", subject, bool(modes[0]))
        readings.add("gpu.ecc.enabled_after_reset", subject, bool(modes[1]))
    for name, kind, counter in (
        ("volatile_corrected", nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC),
        ("volatile_uncorrected", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC),
        ("aggregate_corrected", nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_AGGREGATE_ECC),
        ("aggregate_uncorrected", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_AGGREGATE_ECC),
    ):
        call = nvml.nvmlDeviceGetTotalEccErrors
        readings.read("gpu.ecc." + name, subject, call, handle, kind, counter)


def measure_places(readings, nvml, subject, handle):
    """SRAM apart from DRAM: SRAM has no rows to remap."""
    uncorrected, volatile = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    for name, place in (
        ("sram_uncorrected", nvml.NVML_MEMORY_LOCATION_SRAM),
        ("dram_uncorrected", nvml.NVML_MEMORY_LOCATION_DRAM),
    ):
        call = nvml.nvmlDeviceGetMemoryErrorCounter
        readings.read("gpu.ecc." + name, subject, call, handle, uncorrected, volatile, place)
    readings.read("gpu.ecc.sram_threshold_exceeded", subject, threshold, nvml, handle)


def threshold(nvml, handle):
    """The driver's own flag that SRAM errors passed the replacement threshold."""
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return bool(status.bThresholdExceeded)


def measure_repairs(readings, nvml, subject, handle):
    try:
        corrected, uncorrected, pending, failed = nvml.nvmlDeviceGetRemappedRows(handle)
    except Exception as exc:
        unsupported = getattr(exc, "value", None) in (3, 13)
        shape = "not supported: gpu.remap %s" if unsupported else "gpu.remap %s: %s"
        readings.note(shape % (subject if unsupported else (subject, exc)))
    else:
        readings.add("gpu.remap.corrected", subject, corrected)
        readings.add("gpu.remap.uncorrected", subject, uncorrected)
        readings.add("gpu.remap.pending", subject, bool(pending))
        readings.add("gpu.remap.failed", subject, bool(failed))
    readings.read("gpu.remap.banks_without_spares", subject, banks_without_spares, nvml, handle)


def banks_without_spares(nvml, handle):
    histogram = nvml.nvmlDeviceGetRowRemapperHistogram(handle)
    return int(histogram.none)


if __name__ == "__main__":
    sys.exit(main(with_nvml(measure)))
