"""RUNS ON THE NODE. Trains a small fixed transformer one step and digests every number it computed.

Fixed weights, fixed input, deterministic operations: equal hardware and software give equal bits,
so the one GPU of a fleet that differs computes wrongly. Loads the GPU shortly, changes nothing.
"""

import collections
import ctypes
import hashlib
import json
import os
import platform
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


WIDTH, HEADS, LAYERS, LENGTH, BATCH, WORDS, EXPERTS = 128, 4, 2, 64, 4, 256, 4


def fixed(torch, rows, columns, factor):
    """Weights in -0.08..0.08 by a formula: no random generator, the same in every version."""
    k = torch.arange(rows * columns, dtype=torch.int64)
    return (((k * factor + 12345) % 2147483647 % 257 - 128).float() / 1600.0).reshape(rows, columns)


def weights(torch, device, dtype, experts):
    """Every weight by name, ready for gradients."""
    shapes = {"embed": (WORDS, WIDTH), "place": (LENGTH, WIDTH), "out": (WIDTH, WORDS)}
    for layer in range(LAYERS):
        shapes["qkv%d" % layer] = (WIDTH, 3 * WIDTH)
        shapes["proj%d" % layer] = (WIDTH, WIDTH)
        shapes["gate%d" % layer] = (WIDTH, EXPERTS)
        for expert in range(experts):
            shapes["up%d.%d" % (layer, expert)] = (WIDTH, 4 * WIDTH)
            shapes["down%d.%d" % (layer, expert)] = (4 * WIDTH, WIDTH)
    made = {}
    for number, name in enumerate(sorted(shapes)):
        value = fixed(torch, shapes[name][0], shapes[name][1], 1103515245 + 2 * number)
        made[name] = value.to(dtype).to(device).requires_grad_(True)
    return made


def attention(torch, x, w, layer):
    q, k, v = (x @ w["qkv%d" % layer]).chunk(3, dim=-1)
    split = (BATCH, LENGTH, HEADS, WIDTH // HEADS)
    q, k, v = (t.reshape(split).transpose(1, 2) for t in (q, k, v))
    # Written out: a fused kernel may choose another order of sums from run to run.
    scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=x.device).tril()
    seen = torch.softmax(scores.masked_fill(~mask, float("-inf")).float(), -1).to(x.dtype) @ v
    return seen.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH) @ w["proj%d" % layer]


def feed_forward(torch, x, w, layer, experts):
    """Dense, or a mixture in which every expert sees every token and the gate weighs them."""
    parts = [
        torch.nn.functional.gelu(x @ w["up%d.%d" % (layer, e)]) @ w["down%d.%d" % (layer, e)]
        for e in range(experts)
    ]
    if experts == 1:
        return parts[0]
    share = torch.softmax((x @ w["gate%d" % layer]).float(), -1).to(x.dtype)
    return sum(part * share[..., e : e + 1] for e, part in enumerate(parts))


def norm(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def forward(torch, w, tokens, experts):
    pick = torch.nn.functional.one_hot(tokens, WORDS).to(w["embed"].dtype)
    x = pick @ w["embed"] + w["place"]
    for layer in range(LAYERS):
        x = x + attention(torch, norm(x), w, layer)
        x = x + feed_forward(torch, norm(x), w, layer, experts)
    return norm(x) @ w["out"]


def step(torch, device, dtype, experts, flip=None):
    """One training step; every tensor in it by name: logits, gradients, updated weights."""
    w = weights(torch, device, dtype, experts)
    tokens = (torch.arange(BATCH * LENGTH) * 31 % WORDS).reshape(BATCH, LENGTH).to(device)
    target = torch.nn.functional.one_hot((tokens * 7 + 3) % WORDS, WORDS)
    logits = forward(torch, w, tokens, experts)
    if flip is not None:
        flip(logits)
    loss = -(torch.log_softmax(logits.float(), -1) * target).sum(-1).mean()
    names = sorted(w)
    gradients = torch.autograd.grad(loss, [w[name] for name in names], allow_unused=True)
    found = {"logits": logits.detach(), "loss": loss.detach()}
    for number, name in enumerate(names):
        gradient = gradients[number]
        if gradient is not None:
            found["grad " + name] = gradient
            found["new " + name] = (w[name] - 0.01 * gradient).detach()
    return found


def digest(torch, found):
    """SHA-256 over the bits of every tensor, in the order of their names."""
    whole = hashlib.sha256()
    for name in sorted(found):
        tensor = found[name].cpu().contiguous()
        whole.update(name.encode())
        size = tensor.numel() * tensor.element_size()
        whole.update(ctypes.string_at(tensor.data_ptr(), size))
    return whole.hexdigest()[:32]


def burn(torch, readings, parameters, subject, device):
    torch.use_deterministic_algorithms(True)
    if device.type == "cpu":
        torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = (
        torch.float32
        if device.type == "cpu"
        else getattr(torch, parameters.get("dtype", "bfloat16"))
    )
    readings.add("numerics.minigpt.kind", subject, kind(torch, device, dtype))
    for name, experts in (("dense", 1), ("moe", EXPERTS)):
        counts = collections.Counter()
        try:
            for _ in range(max(2, int(parameters.get("least", 2)))):
                counts[digest(torch, step(torch, device, dtype, experts))] += 1
        finally:
            tell(readings, name, subject, counts)


def tell(readings, name, subject, counts):
    """What the steps gave; a deadline may have ended them, and one says nothing of repeating."""
    steps = sum(counts.values())
    if steps < 2:
        return
    readings.add("numerics.minigpt.%s_digest" % name, subject, usual(counts))
    readings.add("numerics.minigpt.%s_repeats" % name, subject, len(counts) == 1)
    readings.add("numerics.minigpt.%s_steps" % name, subject, steps)


def kind(torch, device, dtype):
    """What has to be the same before bits can be asked to be: part, instructions, library."""
    if device.type == "cuda":
        part = "%s, CUDA %s" % (torch.cuda.get_device_name(device), torch.version.cuda)
    else:
        part = "%s %s" % (platform.machine(), torch.backends.cpu.get_cpu_capability())
    return "%s, torch %s, %s" % (part, torch.__version__, str(dtype).replace("torch.", ""))


def usual(counts):
    """The digest that came most often; of equals the smallest, wherever it is asked."""
    return min(counts, key=lambda name: (-counts[name], name))


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
