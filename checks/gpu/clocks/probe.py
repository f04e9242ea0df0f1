"""RUNS ON THE NODE. Reads clocks, heat, power and activity of every GPU; changes nothing."""

import json
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
    reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    if reasons is None:
        reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    gpus = list(handles(readings, nvml))
    for subject, handle in gpus:
        readings.read("gpu.clocks.event_reasons", subject, reasons, handle)
        readings.read("gpu.clocks.busy_pct", subject, busy, nvml, handle)
        readings.read(
            "gpu.clocks.sm_mhz", subject, clock, nvml.nvmlDeviceGetClockInfo, nvml, handle
        )
        readings.read(
            "gpu.clocks.max_sm_mhz", subject, clock, nvml.nvmlDeviceGetMaxClockInfo, nvml, handle
        )
        measure_heat(readings, nvml, subject, handle)
        measure_power(readings, nvml, subject, handle)
    measure_tensor_cores(readings, nvml, gpus, float(parameters.get("tensor_sample_s", 0.25)))


def busy(nvml, handle):
    """Percent of the last sample period in which a kernel ran."""
    return int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def clock(call, nvml, handle):
    return call(handle, nvml.NVML_CLOCK_SM)


def measure_heat(readings, nvml, subject, handle):
    core = nvml.NVML_TEMPERATURE_GPU
    name = "gpu.clocks.temperature_c"
    temperature = readings.read(name, subject, nvml.nvmlDeviceGetTemperature, handle, core)
    if temperature is None:
        return
    kind = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
    try:
        limit = nvml.nvmlDeviceGetTemperatureThreshold(handle, kind)
    except Exception as exc:
        readings.note("gpu.clocks.temperature_margin_c %s: %s" % (subject, exc))
        return
    readings.add("gpu.clocks.temperature_margin_c", subject, int(limit) - int(temperature))


def measure_power(readings, nvml, subject, handle):
    """NVML gives milliwatts; check.yaml says watts."""
    for name, call in (
        ("gpu.clocks.power_w", nvml.nvmlDeviceGetPowerUsage),
        ("gpu.clocks.power_limit_w", nvml.nvmlDeviceGetEnforcedPowerLimit),
        ("gpu.clocks.default_power_limit_w", nvml.nvmlDeviceGetPowerManagementDefaultLimit),
    ):
        readings.read(name, subject, watts, call, handle)


def watts(call, handle):
    return call(handle) / 1000.0


def measure_tensor_cores(readings, nvml, gpus, sample_s):
    """How busy tensor cores were between two samples, all GPUs over the same moment."""
    before = [(subject, handle, first_sample(nvml, handle)) for subject, handle in gpus]
    if any(not isinstance(sample, Exception) for _, _, sample in before):
        time.sleep(sample_s)
    for subject, handle, sample in before:
        readings.read("gpu.clocks.tensor_pct", subject, tensor_pct, nvml, handle, sample)


def first_sample(nvml, handle):
    """A sample of a GPU's counters, or the error that says why there is none, as before Hopper."""
    try:
        if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
            return nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        return sample_of(nvml, handle)
    except Exception as exc:
        return exc


def sample_of(nvml, handle):
    sample = nvml.nvmlGpmSampleAlloc()
    try:
        return nvml.nvmlGpmSampleGet(handle, sample)
    except Exception:
        nvml.nvmlGpmSampleFree(sample)
        raise


def tensor_pct(nvml, handle, before):
    if isinstance(before, Exception):
        raise before
    try:
        after = sample_of(nvml, handle)
        try:
            return between(nvml, before, after)
        finally:
            nvml.nvmlGpmSampleFree(after)
    finally:
        nvml.nvmlGpmSampleFree(before)


def between(nvml, before, after):
    asked = nvml.c_nvmlGpmMetricsGet_t()
    asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, 1
    asked.sample1, asked.sample2 = before, after
    asked.metrics[0].metricId = nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL
    told = nvml.nvmlGpmMetricsGet(asked).metrics[0]
    if told.nvmlReturn:
        raise nvml.NVMLError(told.nvmlReturn)
    if not 0.0 <= told.value <= 100.0:
        raise ValueError("%r is no percentage" % told.value)
    return round(told.value, 1)


if __name__ == "__main__":
    sys.exit(main(with_nvml(measure)))
