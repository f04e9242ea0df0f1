"""RUNS ON THE NODE. Copies data between host and GPUs; measures, and compares every byte.

Loads GPU and PCIe or NVLink, changes nothing.
"""

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


def bits_by_formula(torch, words):
    k = torch.arange(words, dtype=torch.int64)
    return (k * 2654435761 % 4294967296 - 2147483648).to(torch.int32)


def burn(torch, readings, parameters, subject, device):
    words = int(parameters.get("bytes", 64 << 20)) // 4
    data = bits_by_formula(torch, words)
    if device.type == "cuda":
        data = data.pin_memory()
    back = torch.empty_like(data)
    on_device = torch.empty(words, dtype=torch.int32, device=device)
    second = torch.empty_like(on_device)
    rounds = int(parameters.get("rounds", 8))
    for name, target, source in (
        ("h2d", on_device, data), ("d2d", second, on_device), ("d2h", back, second),
    ):  # fmt: skip
        rate = timed(torch, device, target, source, rounds)
        readings.add("gpu.copy.%s_gb_per_s" % name, subject, rate)
    wrong = int((back != data).sum())
    wrong += peers(torch, readings, parameters, subject, device, on_device)
    readings.add("gpu.copy.wrong_words", subject, wrong)


def timed(torch, device, target, source, rounds):
    """GB/s of the fastest of some copies."""
    best = 0.0
    for _ in range(rounds):
        synchronize(torch, device)
        start = time.monotonic()
        target.copy_(source, non_blocking=True)
        synchronize(torch, device)
        best = max(best, source.numel() * 4 / max(1e-9, time.monotonic() - start) / 1e9)
    return best


def peers(torch, readings, parameters, subject, device, data):
    """Copies to every other GPU of the node and back; returns how many words came back wrong."""
    if device.type != "cuda":
        return 0
    wrong, slowest = 0, None
    for index in range(torch.cuda.device_count()):
        if index == device.index:
            continue
        there = torch.empty_like(data, device=torch.device("cuda", index))
        rate = timed(torch, device, there, data, 3)
        slowest = rate if slowest is None else min(slowest, rate)
        wrong += int((there.to(device) != data).sum())
    if slowest is not None:
        readings.add("gpu.copy.slowest_peer_gb_per_s", subject, slowest)
    return wrong


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


def measure(readings, parameters):
    try:
        # Deterministic cuBLAS needs it before torch starts CUDA (torch notes on reproducibility).
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        import torch
    except Exception as exc:
        readings.note("torch: %s" % exc)
        return 1
    pairs = devices(torch, readings, parameters)
    for subject, device in pairs:
        burn(torch, readings, parameters, subject, device)
    return 0 if pairs or parameters.get("expected_gpus") == 0 else 1


if __name__ == "__main__":
    sys.exit(main(measure))
