"""One reduction: the sum over a gradient of all ranks is the sum of the ranks' own sums."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class WrongSum:
    """A reduction that gave something else than the ranks had, by more than rounding explains."""

    step: int
    error: float
    bound: float
    of: int


class SumCheck:
    """What one rank had before a reduction and what came of it."""

    def __init__(self, step: int, gradient: Tensor) -> None:
        self._step = step
        self._had = torch.stack((gradient.sum(), gradient.norm())).double()
        self._got = torch.zeros(())
        self._rounding = torch.finfo(gradient.dtype).eps * gradient.numel() ** 0.5

    def reduced(self, gradient: Tensor, averaged_over: int) -> Tensor:
        """Note the result; what the others have to know, as whole numbers."""
        self._got = gradient.sum().double() * averaged_over
        return self._had.view(torch.int64)

    def judge(self, everybody: Tensor) -> WrongSum | None:
        """Compare, with one row a rank."""
        had = everybody.contiguous().view(torch.float64)
        error = float((had[:, 0].sum() - self._got).abs())
        # No element is rounded by more than eps of itself an addition: Cauchy-Schwarz over them.
        bound = 8 * self._rounding * len(had) * float(had[:, 1].sum())
        return WrongSum(self._step, error, bound, len(had)) if error > bound else None
