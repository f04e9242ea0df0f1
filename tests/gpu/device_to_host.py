"""What checkpoints of every step cost on a device: measured on a GPU, tried out on a CPU.

Nothing here asks which of the two it is; `tests/gpu/test_checkpoints.py` has the limits.
"""

import hashlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from brctl.training.checkpoints.capture import Copier
from brctl.training.checkpoints.slots import SlotFile, pages
from brctl.training.step_checkpoints import Settings, StepCheckpoints

COPIES = 5


@dataclass(frozen=True, slots=True)
class CopyRates:
    """Bytes a second from the device into a slot, and into PyTorch's own memory beside it."""

    slot: float
    pinned: float
    pageable: float


@dataclass(frozen=True, slots=True)
class Size:
    """A model of `layers` square layers and its batch: AdamW makes three times its weights."""

    layers: int
    width: int
    batch: int

    def build(self, device: str) -> nn.Sequential:
        torch.manual_seed(1)
        layers = [nn.Linear(self.width, self.width, bias=False) for _ in range(self.layers)]
        return nn.Sequential(*layers).to(device)


@dataclass(frozen=True, slots=True)
class Trained:
    """Some steps of training.

    Attributes:
        resumed: The step it went on from.
        step_s: Median seconds of a step.
        blocked_s: Median seconds of a step in which training waited for checkpoints.
        digest: Of all weights at the end.
    """

    resumed: int
    step_s: float
    blocked_s: float
    saved: int
    digest: str


def synchronize(device: str) -> None:
    """Wait until the device has done everything."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def copy_rates(device: str, mib: int, folder: Path) -> CopyRates:
    """The same bytes into a slot as checkpoints page-lock it, into pinned and other memory."""
    tensor = torch.randint(0, 255, (mib << 20,), dtype=torch.uint8, device=device)
    slot = SlotFile.create(folder / "rates", pages(len(tensor))).slots[0]
    copier = Copier(lambda: None)
    copier.pin(slot)
    into = torch.frombuffer(slot.payload, dtype=torch.uint8)[: len(tensor)]
    pinned = torch.empty(len(tensor), dtype=torch.uint8, pin_memory=tensor.is_cuda)
    pageable = torch.empty(len(tensor), dtype=torch.uint8)
    rates = CopyRates(*(_rate(tensor, target, device) for target in (into, pinned, pageable)))
    if not torch.equal(into, tensor.cpu()):
        raise AssertionError("the slot has other bytes than the device")
    copier.close()
    return rates


def _rate(tensor: Tensor, target: Tensor, device: str) -> float:
    seconds = []
    for _ in range(COPIES + 1):
        synchronize(device)
        began = time.monotonic()
        target.copy_(tensor, non_blocking=True)
        synchronize(device)
        seconds.append(time.monotonic() - began)
    return len(tensor) / statistics.median(seconds[1:])


def train(
    device: str, size: Size, to_step: int, folder: Path | None, *, fused: bool = False
) -> Trained:
    """Train up to a step; with a folder every step is kept there, and gone on from."""
    model = size.build(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    kept = None
    if folder is not None:
        settings = Settings(job="gpu", directory=folder / "slots")
        kept = StepCheckpoints(model, optimizer, axes="dp=1", settings=settings)
    try:
        return _train(device, size, to_step, model, optimizer, kept)
    finally:
        if kept is not None:
            kept.close()


def _train(
    device: str,
    size: Size,
    to_step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    kept: StepCheckpoints | None,
) -> Trained:
    resumed = kept.step if kept else 0
    seconds, blocked, before_s = [], [], kept.counts.blocked_s if kept else 0.0
    for step in range(resumed, to_step):
        synchronize(device)
        began = time.monotonic()
        done: Callable[[Callable[[], object]], object] = kept.step_done if kept else _call
        _compute(model, optimizer, step, size, device)
        done(optimizer.step)
        synchronize(device)
        seconds.append(time.monotonic() - began)
        blocked.append((kept.counts.blocked_s if kept else 0.0) - before_s)
        before_s += blocked[-1]
    saved = kept.counts.saved if kept else 0
    measured = slice(min(2, len(seconds) - 1), None)  # the first copies touch their pages
    return Trained(
        resumed, statistics.median(seconds[measured]), statistics.median(blocked[measured]), saved,
        digest(model),
    )  # fmt: skip


def _call(update: Callable[[], object]) -> object:
    return update()


def _compute(
    model: nn.Module, optimizer: torch.optim.Optimizer, step: int, size: Size, device: str
) -> None:
    generator = torch.Generator(device).manual_seed(step)
    batch = torch.randn(size.batch, size.width, generator=generator, device=device)
    optimizer.zero_grad()
    model(batch).square().mean().backward()


def digest(model: nn.Module) -> str:
    """All bits of all weights."""
    held = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(held).hexdigest()[:16]
