"""Burn-in beside a bare torch.matmul loop on the same device, checking included.

    python -m tests.bench.burnin [--device cpu|cuda] [--dtype bf16] [--size N] [--depth K]

Both run in turns, several times, and the medians are compared: on a machine that does other work
the two meet the same disturbance. Prints one line per data type.
"""

import argparse
import statistics
import time
from types import ModuleType

import torch

from tests.checks.probes import load_probe


def bare(probe: ModuleType, name: str, parameters: dict[str, object], seconds: float) -> float:
    """TFLOP/s of nothing but the product."""
    arguments, result, multiply = probe.DTYPES[name]
    probe.exactly(torch, name)
    device = torch.device(str(parameters["device"]))
    a, b, _ = probe.operands(torch, parameters, getattr(torch, arguments), device)
    out = torch.empty(a.shape[0], b.shape[1], dtype=getattr(torch, result), device=device)
    multiply(torch, a, b, out)
    probe.synchronize(torch, device)
    start, rounds = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        for _ in range(16 if device.type == "cuda" else 1):
            multiply(torch, a, b, out)
            rounds += 1
        probe.synchronize(torch, device)
    work = 2.0 * a.shape[0] * a.shape[1] * b.shape[1] * rounds
    rate: float = work / (time.monotonic() - start) / 1e12
    return rate


def checked(probe: ModuleType, name: str, parameters: dict[str, object], seconds: float) -> float:
    """TFLOP/s of the burn-in, every result compared."""
    readings = probe.Readings()
    device = torch.device(str(parameters["device"]))
    wanted = {**parameters, "dtypes": [name], "seconds": seconds}
    probe.burn(torch, readings, wanted, "device", device)
    values = {row["name"]: row["value"] for row in readings.rows}
    if values["gpu.gemm.wrong_elements"]:
        raise SystemExit(f"{name}: wrong results, see gpu.gemm")
    return float(values[f"gpu.gemm.{name}_tflop_per_s"])


def compare(name: str, parameters: dict[str, object], seconds: float, turns: int) -> float:
    """Ratio of the medians; prints both."""
    probe = load_probe("gpu.gemm")
    plain, full = [], []
    for _ in range(turns):
        plain.append(bare(probe, name, parameters, seconds))
        full.append(checked(probe, name, parameters, seconds))
    ratio = statistics.median(full) / statistics.median(plain)
    print(
        f"{parameters['device']} {name} size {parameters['size']} depth {parameters['depth']}: "
        f"bare {statistics.median(plain):.4f} TFLOP/s, "
        f"burn-in {statistics.median(full):.4f} TFLOP/s, {100 * ratio:.1f} %"
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    cuda = torch.cuda.is_available()
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--dtype", action="append")
    parser.add_argument("--size", type=int, default=4096 if cuda else 512)
    parser.add_argument("--depth", type=int, default=65536 if cuda else 16384)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--turns", type=int, default=5)
    # More threads wait for each other at every operation; on a machine that does other work that
    # is what one would measure.
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    parameters = {"device": chosen.device, "size": chosen.size, "depth": chosen.depth}
    for name in chosen.dtype or ["bf16", "fp32"]:
        compare(name, dict(parameters), chosen.seconds, chosen.turns)


if __name__ == "__main__":
    main()
