"""RUNS ON THE NODE. Multiplies matrices of whole numbers; compares every result with the exact.

Rows of A and columns of B repeat every TILE, so the exact product of one tile (computed in float64
on the CPU) serves for a matrix of any size, and names the tile that is wrong. Inputs lie in -8..7
and the depth is at most 65536, so every partial sum is a whole number of at most 2**22, which
float32 holds exactly whatever the order of additions. Loads the GPU, changes nothing.
"""

import ctypes
import hashlib
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


TILE = 256
KINDS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def whole_numbers(torch, rows, columns, factor):
    """Whole numbers from -8 to 7 by a fixed formula: the same on every device of a fleet."""
    k = torch.arange(rows * columns, dtype=torch.int64)
    return ((k * factor + 12345) % 2147483647 // 65536 % 16 - 8).reshape(rows, columns)


def operands(torch, parameters, dtype, device):
    """A and B on the device, and the exact tile on the CPU."""
    depth = min(int(parameters.get("depth", 4096)), 65536) // TILE * TILE
    left = whole_numbers(torch, TILE, depth, 1103515245)
    right = whole_numbers(torch, depth, TILE, 69069)
    tiles = max(1, int(parameters.get("size", 512)) // TILE)
    a = left.to(dtype).to(device).repeat(tiles, 1)
    b = right.to(dtype).to(device).repeat(1, tiles)
    return a, b, torch.matmul(left.double(), right.double())


RANDOM_SHARE = 0.2
RANDOM_TYPES = ("bf16", "fp16", "fp32", "tf32", "fp64")


def plain(torch, a, b, out):
    torch.matmul(a, b, out=out)


def integers(torch, a, b, out):
    out.copy_(torch._int_mm(a, b))


def eighths(torch, a, b, out):
    """FP8 inputs; B must lie by columns, and fast accumulation would not be exact."""
    one = torch.ones((), device=a.device)
    columns = b.t().contiguous().t()
    product = torch._scaled_mm(
        a, columns, scale_a=one, scale_b=one, out_dtype=out.dtype, use_fast_accum=False
    )
    out.copy_(product)


# name: (input dtype, result dtype, multiply)
DTYPES = {
    "bf16": ("bfloat16", "bfloat16", plain),
    "fp16": ("float16", "float16", plain),
    "fp32": ("float32", "float32", plain),
    "tf32": ("float32", "float32", plain),
    "fp64": ("float64", "float64", plain),
    "int8": ("int8", "int32", integers),
    "fp8": ("float8_e4m3fn", "bfloat16", eighths),
}


def bits(torch, tensor):
    """The tensor as whole numbers, so that a NaN equals itself and -0 differs from 0."""
    return tensor.view(getattr(torch, KINDS[tensor.element_size()]))


def tiled(torch, matrix):
    """The bits of a matrix as (tile row, row, tile column, column)."""
    shape = (matrix.shape[0] // TILE, TILE, matrix.shape[1] // TILE, TILE)
    return bits(torch, matrix).view(shape)


def golden_tile(torch, exact, out):
    """The exact tile in the type of the result, rounded once, as the hardware does."""
    exact = exact if out.dtype == torch.float64 else exact.to(torch.float32)
    return exact.to(out.dtype).to(out.device)


class Checker(object):
    """Marks, on the device, every element that ever differed from the exact one.

    Two passes over a result that mostly lies in the cache, no reduction and no copy to the host:
    checking every result costs about a percent of a product of this depth.
    """

    def __init__(self, torch, golden, out):
        self.torch = torch
        self.golden = tiled(torch, golden)
        self.view = tiled(torch, out)
        self.differs = torch.empty(self.view.shape, dtype=torch.bool, device=out.device)
        self.seen = torch.zeros_like(self.differs)

    def check(self):
        """Compare the whole result."""
        self.torch.ne(self.view, self.golden, out=self.differs)
        self.seen.logical_or_(self.differs)

    def collect(self):
        """(how many elements differed since last asked, place of the first)."""
        count = int(self.seen.sum())
        if not count:
            return 0, None
        tile_row, row, tile_column, column = self.seen.nonzero()[0].tolist()
        self.seen.zero_()
        where = (tile_row * TILE + row, tile_column * TILE + column, tile_row, tile_column)
        return count, "element %d,%d of tile %d,%d" % where


def wrong_columns(torch, out, checksum):
    """Columns whose sum is off: finds and places an error at the cost of one pass over the result.

    Exact only where the result type holds the whole numbers exactly (fp32, fp64, int8).
    """
    return (out.double().sum(0) != checksum).nonzero().flatten().tolist()


class Totals(object):
    """What was found so far; reported even when the deadline ends the last data type."""

    def __init__(self):
        self.wrong, self.compared, self.where = 0, 0, None

    def add(self, name, wrong, compared, place):
        """Count a batch of results of one data type."""
        self.wrong += wrong
        self.compared += compared
        if place and self.where is None:
            self.where = "%s, by result %d: %s" % (name, self.compared, place)

    def report(self, readings, subject):
        if self.compared:
            readings.add("gpu.gemm.wrong_elements", subject, self.wrong)
            readings.add("gpu.gemm.compared_results", subject, self.compared)
        if self.where:
            readings.add("gpu.gemm.first_wrong", subject, self.where)


def burn(torch, readings, parameters, subject, device, flip=None):
    names = parameters.get("dtypes") or ["bf16"]
    seconds = float(parameters.get("seconds", 2)) / len(names)
    totals = Totals()
    try:
        for name in names:
            burn_or_note(torch, readings, parameters, name, subject, device, seconds, flip, totals)
    finally:
        totals.report(readings, subject)


def burn_or_note(torch, readings, parameters, name, subject, device, seconds, flip, totals):
    if name == "fp8" and device.type == "cpu":  # there it is emulated, a thousand times slower
        readings.note("not supported: gpu.gemm.fp8_tflop_per_s %s" % subject)
        return
    try:
        burn_one(torch, readings, parameters, name, subject, device, seconds, flip, totals)
    except (RuntimeError, AttributeError) as exc:
        if "support" not in str(exc) and "attribute" not in str(exc):
            raise  # a device that fails while it computes is no missing feature
        said = (name, subject, str(exc)[:200])
        readings.note("not supported: gpu.gemm.%s_tflop_per_s %s: %s" % said)


def burn_one(torch, readings, parameters, name, subject, device, seconds, flip, totals):
    given, result, multiply = DTYPES[name]
    exactly(torch, name)
    a, b, exact = operands(torch, parameters, getattr(torch, given), device)
    out = torch.empty(a.shape[0], b.shape[1], dtype=getattr(torch, result), device=device)
    checker = Checker(torch, golden_tile(torch, exact, out), out)
    multiply(torch, a, b, out)
    exactly_s = seconds * (1.0 - RANDOM_SHARE)
    start = time.monotonic()
    rounds = hammer(
        torch, parameters, multiply, (a, b, out), checker, device, exactly_s, flip, name, totals
    )
    spent = time.monotonic() - start
    work = 2.0 * a.shape[0] * a.shape[1] * b.shape[1] * rounds
    readings.add("gpu.gemm.%s_tflop_per_s" % name, subject, work / spent / 1e12)
    readings.add("gpu.gemm.%s_digest" % name, subject, digest(torch, out))
    if name in RANDOM_TYPES:
        left_s = seconds * RANDOM_SHARE
        again = repeat(torch, parameters, multiply, (a, b, out), device, left_s, flip)
        readings.add("gpu.gemm.%s_unrepeatable_elements" % name, subject, again)


def hammer(torch, parameters, multiply, matrices, checker, device, seconds, flip, name, totals):
    """Multiply for a while and compare every result; how many there were."""
    a, b, out = matrices
    batch, rounds = int(parameters.get("batch", 16)), 0
    synchronize(torch, device)
    start = time.monotonic()
    least = max(1, int(parameters.get("least", 1)))
    while rounds < least or time.monotonic() - start < seconds:
        # The host looks once a batch: asking more often would keep the device waiting.
        for _ in range(batch):
            rounds += 1
            multiply(torch, a, b, out)
            if flip is not None:
                flip(out, rounds)
            checker.check()
        found, place = checker.collect()
        totals.add(name, found, batch, place)
    synchronize(torch, device)
    return rounds


def repeat(torch, parameters, multiply, matrices, device, seconds, flip):
    """Random numbers toggle more bits; their product is not known, but must repeat itself.

    For its share of the time only: who wants so many results wants exact ones.
    """
    a, b, out = matrices
    generator = torch.Generator().manual_seed(20260110)
    for matrix in (a, b):
        values = torch.randn(TILE, TILE, generator=generator).to(matrix.dtype).to(device)
        matrix.copy_(values.repeat(matrix.shape[0] // TILE, matrix.shape[1] // TILE))
    multiply(torch, a, b, out)
    checker = Checker(torch, out.clone(), out)
    totals, parameters = Totals(), dict(parameters, least=1)
    hammer(torch, parameters, multiply, matrices, checker, device, seconds, flip, "", totals)
    return totals.wrong


def exactly(torch, name):
    """Switch off what would round partial sums, and TF32 unless it is what we test."""
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = name == "tf32"
    matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False


def digest(torch, out):
    """SHA-256 of the first tile: equal on every healthy device for one dtype and depth."""
    tile = out[:TILE, :TILE].cpu().contiguous()
    size = tile.numel() * tile.element_size()
    return hashlib.sha256(ctypes.string_at(tile.data_ptr(), size)).hexdigest()[:32]


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
