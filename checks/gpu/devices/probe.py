"""RUNS ON THE NODE. Reads which GPUs NVML and PCI show and who they are; changes nothing."""

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


def find_pci(root):
    """Addresses of NVIDIA display controllers on the PCI bus; NVML is not asked."""
    found = []
    for name in sorted(os.listdir(root)):
        try:
            with open(os.path.join(root, name, "vendor")) as stream:
                vendor = stream.read().strip()
            with open(os.path.join(root, name, "class")) as stream:
                kind = stream.read().strip()
        except OSError:
            continue
        if vendor == "0x10de" and kind[:6] in ("0x0300", "0x0302"):
            found.append(name)
    return found


def measure(readings, parameters, nvml):
    if parameters.get("expected_gpus") is not None:
        readings.add("gpu.devices.expected", "", int(parameters["expected_gpus"]))
    readings.read("gpu.devices.driver_version", "", nvml.nvmlSystemGetDriverVersion)
    count = readings.read("gpu.devices.nvml_count", "", nvml.nvmlDeviceGetCount) or 0
    for index in range(count):
        measure_device(readings, nvml, index)


def measure_device(readings, nvml, index):
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = nvml.nvmlDeviceGetUUID(handle)
    except Exception as exc:
        readings.add("gpu.device.lost", "gpu:index-%d" % index, getattr(exc, "value", None) == 15)
        readings.add("gpu.device.error", "gpu:index-%d" % index, str(exc))
        return
    subject = "gpu:" + (uuid.decode() if isinstance(uuid, bytes) else uuid)
    readings.add("gpu.device.lost", subject, False)
    readings.add("gpu.device.index", subject, index)
    readings.read("gpu.device.pci", subject, address, nvml, handle)
    readings.read("gpu.device.name", subject, nvml.nvmlDeviceGetName, handle)
    readings.read("gpu.device.serial", subject, nvml.nvmlDeviceGetSerial, handle)


def address(nvml, handle):
    """PCI address as sysfs spells it: NVML pads the domain to eight digits."""
    raw = nvml.nvmlDeviceGetPciInfo(handle).busId
    text = raw.decode() if isinstance(raw, bytes) else raw
    return text.lower()[-12:]


def measure_all(readings, parameters):
    """The PCI bus first: it answers when the driver does not."""
    root = parameters.get("pci_root") or "/sys/bus/pci/devices"
    try:
        found = find_pci(root)
        readings.add("gpu.devices.pci_count", "", len(found))
        readings.add("gpu.devices.pci_addresses", "", " ".join(found).lower())
    except OSError as exc:
        readings.note("gpu.devices.pci_count: %s" % exc)
    return with_nvml(measure)(readings, parameters)


if __name__ == "__main__":
    sys.exit(main(measure_all))
