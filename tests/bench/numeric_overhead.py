"""What the checks of a job's numbers cost a step, on CPUs.

    python -m tests.bench.numeric_overhead [--ranks 2] [--steps 64] [--every 16]

Ranks of this machine, forked, train with the checks. For each model: CPU time of a step without
them and CPU time inside them, gloo's threads included, in percent: means over whole rounds of
`every` steps, since a look costs more than the steps between. Goal: under 0.5 %. Exit 1 where the
larger model misses it; the lab's own has steps of a few milliseconds and shows what the calls cost.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

GOAL = 0.005
SHAPES = {"the lab's": (64, 2, 192), "larger": (256, 4, 1024)}
"""Width, layers and tokens a step."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Of one model: seconds of CPU time a step."""

    model: str
    parameters: int
    step_s: float
    checks_s: float

    @property
    def share(self) -> float:
        """Of a step."""
        return self.checks_s / self.step_s

    def row(self) -> str:
        """One line of the table."""
        return (
            f"{self.model:10} {self.parameters:>11,} {self.step_s * 1e3:>9.1f}"
            f" {self.checks_s * 1e6:>9.0f} {self.share:>8.2%}"
        )


@dataclass(frozen=True, slots=True)
class Length:
    """How long ranks train: whole rounds of looks."""

    ranks: int
    steps: int
    every: int

    @property
    def rounds(self) -> range:
        """Whole ones; the first, below zero, is not counted."""
        return range(-self.every, -(-self.steps // self.every) * self.every)


def measure(length: Length) -> list[Overhead]:
    """Both models, one after the other.

    Raises:
        RuntimeError: A rank failed.
    """
    return [_measure(name, length) for name in SHAPES]


def _measure(name: str, length: Length) -> Overhead:
    with tempfile.TemporaryDirectory() as folder:
        pids = [_fork(name, rank, length, Path(folder)) for rank in range(length.ranks)]
        if any([os.waitpid(pid, 0)[1] for pid in pids]):
            raise RuntimeError(f"a rank with the model {name!r} failed")
        row = json.loads((Path(folder) / "row.json").read_text())
    return Overhead(name, row["parameters"], row["step_s"], row["checks_s"])


def _fork(name: str, rank: int, length: Length, folder: Path) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _train(name, rank, length, folder)
            status = 0
        except BaseException:  # noqa: BLE001  # a child must not go on as its parent
            sys.excepthook(*sys.exc_info())
        os._exit(status)
    return pid


def _train(name: str, rank: int, length: Length, folder: Path) -> None:
    import torch
    import torch.distributed as dist
    from torch import nn

    from brctl.training.numeric_checks import NumericChecks
    from brctl.training.progress import Progress

    torch.set_num_threads(1)
    torch.manual_seed(7)
    store = dist.FileStore(str(folder / "store"), length.ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=length.ranks)
    width, layers, tokens = SHAPES[name]
    blocks = [
        nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
            nn.Linear(4 * width, width),
        )
        for _ in range(layers)
    ]  # fmt: skip
    model = nn.Sequential(*blocks, nn.Linear(width, width))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    checks = NumericChecks(model, Progress(None, rank, ""), every=length.every)
    parameters = list(model.parameters())
    batch = torch.randn(tokens, width)

    meter = _Meter()
    # The product is checked inside the forward pass, by a hook of its layer.
    setattr(checks._products, "_check", meter.metered(checks._products._check))  # noqa: B010
    plain = []
    for step in length.rounds:
        began, before = time.process_time(), meter.seconds
        meter.metered(checks.before_step)(step)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        flat = torch.cat([p.grad.flatten() for p in parameters])
        meter.metered(checks.before_reduction)(step, flat)
        dist.all_reduce(flat)
        flat /= length.ranks
        meter.metered(checks.after_reduction)(flat)
        parts = flat.split([p.numel() for p in parameters])
        for p, part in zip(parameters, parts, strict=True):
            p.grad.copy_(part.view_as(p))
        optimizer.step()
        meter.metered(checks.after_update)(step)
        checks_s = meter.seconds - before
        if step >= 0:
            plain.append((time.process_time() - began - checks_s, checks_s))
    plain_s, more_s = (fmean(column) for column in zip(*plain, strict=True))
    if rank == 0:
        row = {"parameters": sum(p.numel() for p in parameters), "step_s": plain_s}
        (folder / "row.json").write_text(json.dumps({**row, "checks_s": more_s}))
    dist.destroy_process_group()


class _Meter:
    """CPU time of this process inside some calls, gloo's threads included."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def metered(self, call: Callable[..., object]) -> Callable[..., object]:
        def timed(*arguments: object) -> object:
            began = time.process_time()
            try:
                return call(*arguments)
            finally:
                self.seconds += time.process_time() - began

        return timed


def main() -> int:
    """Print the table."""
    from brctl.training.numeric_checks import LOOK_EVERY

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--every", type=int, default=LOOK_EVERY, help="steps from look to look")
    flags = parser.parse_args()
    found = measure(Length(flags.ranks, flags.steps, flags.every))
    sys.stdout.write(
        f"{'model':10} {'parameters':>11} {'step ms':>9} {'checks us':>9} {'share':>8}\n"
    )
    sys.stdout.writelines(f"{each.row()}\n" for each in found)
    sys.stdout.write(
        f"a look every {flags.every} steps; load {os.getloadavg()[0]:.1f}; CPU time of a rank;"
        f" goal {GOAL:.1%}\n"
    )
    return 1 if found[-1].share > GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
