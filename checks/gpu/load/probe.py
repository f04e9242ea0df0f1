"""RUNS ON THE NODE. Loads all GPUs at once in ramps; compares the last with the first.

A power supply, a fan or a rack that is too weak shows only when all GPUs pull at the same time, and
when the load comes and goes. Loads the GPUs, changes nothing.
"""

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


def prepare(torch, device, size):
    """Two factors and a result; random numbers, because they draw more power than whole ones."""
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    generator = torch.Generator().manual_seed(20260110)
    factor = torch.randn(size, size, generator=generator).to(kind).to(device)
    return factor, factor.t().contiguous(), torch.empty_like(factor)


class Sensors(object):
    """The worst of each GPU's sensors while it worked; torch reads them through NVML."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.worst = {}
        self.why = None

    def sample(self, number, device):
        """One look; the first that fails is kept as the reason, and no further one is taken."""
        if device.type != "cuda" or self.why:
            return
        try:
            seen = (
                self.cuda.temperature(device),
                self.cuda.power_draw(device) / 1000.0,
                self.cuda.clock_rate(device),
            )
        except Exception as exc:
            self.why = "%s: %s" % (type(exc).__name__, exc)
            return
        hot, power, clock = self.worst.get(number, seen)
        self.worst[number] = (max(hot, seen[0]), max(power, seen[1]), min(clock, seen[2]))

    def tell(self, readings, subjects):
        names = ("gpu.load.hottest_c", "gpu.load.most_w", "gpu.load.slowest_mhz")
        for number, values in sorted(self.worst.items()):
            for place, name in enumerate(names):
                readings.add(name, subjects[number], values[place])
        if self.why:
            readings.note("not supported: sensors during the load, %s" % self.why)


def ramp(torch, loads, seconds, sensors):
    """Products per second of each device while all of them work."""
    counts = [0] * len(loads)
    start = time.monotonic()
    looked = False
    while counts[0] == 0 or time.monotonic() - start < seconds:
        for number, (_, (a, b, out)) in enumerate(loads):
            for _ in range(8 if out.is_cuda else 1):
                torch.matmul(a, b, out=out)
                counts[number] += 1
        if not looked and time.monotonic() - start >= seconds / 2:
            looked = True  # now: all are at work, and a look costs a little of the rate
            for number, (device, _) in enumerate(loads):
                sensors.sample(number, device)
        for device, _ in loads:
            synchronize(torch, device)
    spent = time.monotonic() - start
    return [count / spent for count in counts]


def measure(readings, parameters):
    try:
        import torch
    except Exception as exc:
        readings.note("torch: %s" % exc)
        return 1
    pairs = devices(torch, readings, parameters)
    if not pairs:
        return 0 if parameters.get("expected_gpus") == 0 else 1
    size = int(parameters.get("size", 512))
    loads = [(device, prepare(torch, device, size)) for _, device in pairs]
    ramps = max(2, int(parameters.get("ramps", 6)))
    loaded_s = float(parameters.get("seconds", 10)) / ramps * 0.8
    rates, sensors = [], Sensors(torch.cuda)
    for _ in range(ramps):
        rates.append(ramp(torch, loads, loaded_s, sensors))
        time.sleep(loaded_s / 4)  # the fall of the load is part of the test
    for number, (subject, _) in enumerate(pairs):
        tell_rates(readings, subject, rates[0][number], rates[-1][number], size)
    sensors.tell(readings, [subject for subject, _ in pairs])
    return 0


def tell_rates(readings, subject, first, last, size):
    """Rates of the first and the last ramp, and the droop where it means heat or power."""
    work = 2.0 * size**3 / 1e12
    readings.add("gpu.load.first_tflop_per_s", subject, first * work)
    readings.add("gpu.load.last_tflop_per_s", subject, last * work)
    if subject.startswith("cpu:"):
        readings.note(
            "not supported: gpu.load.droop_pct %s, other processes slow a CPU as well" % subject
        )
    else:
        readings.add("gpu.load.droop_pct", subject, 100.0 * (first - last) / first)


def devices(torch, readings, parameters):
    """(subject, device) of every GPU, or of the CPU when it is asked for; None ends the probe."""
    if parameters.get("device") == "cpu":
        return [("cpu:0", torch.device("cpu"))]
    pairs = []
    for index in range(torch.cuda.device_count()):
        uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
        name = "gpu:GPU-%s" % uuid if uuid is not None else "gpu:index-%d" % index
        pairs.append((name, torch.device("cuda", index)))
    if not pairs and parameters.get("expected_gpus") == 0:
        readings.note("not supported: everything, the node has no GPU")
    elif not pairs:
        readings.note("torch sees no CUDA device")
    return pairs


def synchronize(torch, device):
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    sys.exit(main(measure))
