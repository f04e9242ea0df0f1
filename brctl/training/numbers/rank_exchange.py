"""What the checks of one group of ranks compare, in one collective that nobody waits for."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from brctl.training.numbers.sum_check import WrongSum
from brctl.training.replica_digests import Mismatch

Judge = Callable[[Tensor], Mismatch | WrongSum | None]
"""Of everybody's numbers, one row a rank, what is wrong; None for nothing."""


@dataclass(frozen=True, slots=True)
class _Sent:
    work: dist.Work
    everybody: Tensor
    judges: tuple[tuple[int, Judge], ...]


class RankExchange:
    """One group's; its ranks add the same numbers in the same order."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self._ranks = dist.get_world_size(group)
        self._added: list[tuple[Tensor, Judge]] = []
        self._sent: _Sent | None = None

    def add(self, own: Tensor, judge: Judge) -> None:
        """Have this rank's 64-bit numbers go with the next exchange."""
        self._added.append((own, judge))

    def start(self) -> None:
        """Send what was added."""
        if not self._added:
            return
        own = torch.cat([numbers for numbers, _ in self._added])
        everybody = own.new_empty(self._ranks, len(own))
        work = dist.all_gather(list(everybody), own, group=self._group, async_op=True)
        judges = tuple((len(numbers), judge) for numbers, judge in self._added)
        self._sent = _Sent(work, everybody, judges)
        self._added = []

    def finish(self) -> list[Mismatch | WrongSum]:
        """Wait for what was sent last; what is wrong with it."""
        sent, self._sent = self._sent, None
        if sent is None:
            return []
        sent.work.wait()
        columns = sent.everybody.split([width for width, _ in sent.judges], dim=1)
        found = (judge(part) for part, (_, judge) in zip(columns, sent.judges, strict=True))
        return [wrong for wrong in found if wrong is not None]
