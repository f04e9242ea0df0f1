"""RUNS ON THE NODE. Writes patterns over nearly all free memory of each GPU and reads them back.

Fixed patterns, the address itself, and a march (read a pattern, write its opposite, read that).
Uses the GPU's memory, changes nothing that outlives it.
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


PATTERNS = (0, -1, 0x55555555, -0x55555556, 0x00FF00FF, 0x0F0F0F0F)


def free_bytes(torch, parameters, device):
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return int(parameters.get("cpu_bytes", 64 << 20))


def allocate_blocks(torch, parameters, device, limit, block):
    """As many blocks as fit; stops at the first the device refuses."""
    blocks = []
    for _ in range(int(limit // block)):
        try:
            blocks.append(torch.empty(block // 4, dtype=torch.int32, device=device))
        except RuntimeError:  # torch's out-of-memory error is one
            break
    return blocks


def burn(torch, readings, parameters, subject, device):
    free = free_bytes(torch, parameters, device)
    block = int(parameters.get("block_bytes", 256 << 20))
    limit = free * float(parameters.get("share", 0.96)) - 2 * block
    blocks = allocate_blocks(torch, parameters, device, max(limit, block), block)
    readings.add("gpu.hbm.tested_pct", subject, 100.0 * len(blocks) * block / free)
    errors, first = Errors(torch, device), None
    start, moved = time.monotonic(), 0
    for name, step in steps(torch, block // 4, device):
        for number, cells in enumerate(blocks):
            moved += step(cells, number, errors)
        first = first or errors.place(name, blocks, block)
    synchronize(torch, device)
    readings.add("gpu.hbm.wrong_words", subject, int(errors.count))
    readings.add("gpu.hbm.gb_per_s", subject, moved / max(1e-9, time.monotonic() - start) / 1e9)
    if first:
        readings.add("gpu.hbm.first_wrong", subject, first)


class Errors(object):
    """Counts mismatches on the device and keeps the first place."""

    def __init__(self, torch, device):
        self.torch = torch
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        self.first_mismatch = None

    def compare(self, cells, wanted, number):
        differs = cells != wanted
        now = differs.sum()
        self.count += now
        if self.first_mismatch is None and int(now):
            index = int(differs.nonzero()[0])
            self.first_mismatch = (number, index, int(cells[index]) & 0xFFFFFFFF)

    def place(self, step, blocks, block):
        if self.first_mismatch is None:
            return None
        number, index, value = self.first_mismatch
        return "%s: byte %d of the tested memory reads 0x%08x" % (
            step,
            number * block + index * 4,
            value,
        )


def steps(torch, words, device):
    """(name, step) in order; a step gets a block and returns the bytes it moved."""
    index = torch.arange(words, dtype=torch.int32, device=device)

    def write(pattern):
        return lambda cells, number, errors: (cells.fill_(pattern), words * 4)[1]

    def read(pattern):
        return lambda cells, number, errors: (errors.compare(cells, pattern, number), words * 4)[1]

    def march(pattern):
        """March: read the pattern, write its opposite in place, read that."""

        def step(cells, number, errors):
            errors.compare(cells, pattern, number)
            cells.bitwise_not_()
            errors.compare(cells, ~pattern, number)
            return words * 16

        return step

    def write_address(cells, number, errors):
        torch.add(index, number * 7919, out=cells)
        return words * 8

    def read_address(cells, number, errors):
        errors.compare(cells, index + number * 7919, number)
        return words * 8

    for pattern in PATTERNS:
        yield "write %08x" % (pattern & 0xFFFFFFFF), write(pattern)
        yield "read %08x" % (pattern & 0xFFFFFFFF), read(pattern)
    yield "march write", write(0x33333333)
    yield "march", march(0x33333333)
    yield "write addresses", write_address
    yield "read addresses", read_address


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
