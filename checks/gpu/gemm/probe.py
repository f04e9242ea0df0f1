"""RUNS ON THE NODE. Multiplies matrices of whole numbers on every GPU for a short while.

Each compared result has one exact answer, whatever the order of sums. Needs torch; loads the GPU,
changes nothing else.
"""

import hashlib
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

    def take(self, name, subject, call, *arguments):
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


def out_of_time(signum, frame):
    raise TimeoutError("deadline_s reached")


def main(measure):
    """Read parameters, measure within the deadline, print what was read so far whatever happens."""
    parameters = json.loads(sys.stdin.read() or "{}")
    readings = Readings()
    status = 0
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, float(parameters.get("deadline_s", 10)) * 0.9))
    try:
        status = measure(readings, parameters) or 0
    except Exception as exc:
        readings.note("%s: %s" % (type(exc).__name__, exc))
        status = 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    json.dump({"measurements": readings.rows, "notes": readings.notes}, sys.stdout)
    return status


def device_names(torch, parameters):
    """(subject, device) of what is to be tested; the CPU only when asked for."""
    if parameters.get("device") == "cpu":
        return [("cpu:0", torch.device("cpu"))]
    if not torch.cuda.is_available():
        return []
    pairs = []
    for index in range(torch.cuda.device_count()):
        uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
        name = "gpu:GPU-%s" % uuid if uuid is not None else "gpu:index-%d" % index
        pairs.append((name, torch.device("cuda", index)))
    return pairs


def inputs(torch, size, dtype, device):
    """Whole numbers from -8 to 7 by a fixed formula, the same on every device of the fleet.

    With size <= 2048 every sum stays below 2**24, so float32 holds it exactly whatever the order of
    additions, and every other dtype holds the rounding of the exact value.
    """
    k = torch.arange(size * size, dtype=torch.int64)
    a = ((k * 1103515245 + 12345) // 65536 % 16 - 8).reshape(size, size)
    b = ((k * 69069 + 1) // 65536 % 16 - 8).reshape(size, size)
    return a, b, a.to(dtype).to(device), b.to(dtype).to(device)


def exact(torch, a, b, dtype):
    """The product in float64 on the CPU, exact, rounded once to the dtype."""
    return torch.matmul(a.double(), b.double()).to(torch.float32).to(dtype)


def bits(torch, tensor):
    """The tensor as whole numbers, so that a NaN equals itself and -0 differs from 0."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(kinds[tensor.element_size()])


def burn(torch, subject, device, parameters, readings, flip=None):
    """Multiply for a while; every result is compared on the device, and what differs is located."""
    dtype = getattr(torch, parameters.get("dtype", "bfloat16"))
    size, every = int(parameters.get("size", 1024)), int(parameters.get("compare_every", 4))
    left, right, a, b = inputs(torch, size, dtype, device)
    golden = bits(torch, exact(torch, left, right, dtype).to(device))
    out = torch.empty(size, size, dtype=dtype, device=device)
    wrong = torch.zeros((), dtype=torch.int64, device=device)
    rounds, compared, where = 0, 0, None
    start = time.monotonic()
    while time.monotonic() - start < float(parameters.get("seconds", 2)) or compared == 0:
        torch.matmul(a, b, out=out)
        rounds += 1
        if flip is not None:
            flip(out, rounds)
        if rounds % every == 0:
            compared += 1
            wrong += (bits(torch, out) != golden).sum()
            if compared % 16 == 1 and where is None and int(wrong):
                where = locate(torch, bits(torch, out) != golden)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    spent = time.monotonic() - start
    report(readings, subject, rounds * 2.0 * size**3 / spent / 1e12, int(wrong), compared, where)
    readings.add("gpu.gemm.digest", subject, digest(torch, out))


def locate(torch, different):
    """`row,column` of the first element that differs."""
    found = different.nonzero()
    return "%d,%d" % tuple(found[0].tolist()) if len(found) else None


def report(readings, subject, rate, wrong, compared, where):
    readings.add("gpu.gemm.tflop_per_s", subject, rate)
    readings.add("gpu.gemm.wrong_elements", subject, wrong)
    readings.add("gpu.gemm.compared_results", subject, compared)
    if where is not None:
        readings.add("gpu.gemm.first_wrong_element", subject, where)


def digest(torch, tensor):
    """SHA-256 of the result: equal on every healthy device of one dtype and size."""
    data = bits(torch, tensor.cpu()).contiguous().reshape(-1).tolist()
    return hashlib.sha256(repr(data).encode()).hexdigest()[:32]


def measure(readings, parameters):
    try:
        import torch
    except Exception as exc:
        readings.note("torch: %s" % exc)
        return 1
    devices = device_names(torch, parameters)
    if not devices and parameters.get("expected_gpus") == 0:
        readings.note("not supported: everything, the node has no GPU")
        return 0
    if not devices:
        readings.note("torch sees no CUDA device")
        return 1
    for subject, device in devices:
        burn(torch, subject, device, parameters, readings)
    return 0


if __name__ == "__main__":
    sys.exit(main(measure))
