"""Wrong numbers, seen in the step in which they come up: three lines of a training script.

    checks = NumericChecks(model, progress)          # after init_process_group, on every rank
    for step in ...:
        checks.before_step(step)
        ...
        checks.after_update(step)

In every step a digest is made of each tensor that must be equal on several ranks. A look, every
sixteenth step unless the script says otherwise, exchanges the digests of all steps since the last,
so that what differs is told with the step in which it came up; it checks one matrix product, and,
where gradients are at hand before and after it, that a sum over the ranks is the sum of what they
had.

What is found goes into the rank's progress file, where `brctl dx` reads it. Training goes on;
`mark` says of a checkpoint whether numbers were wrong before it. Each finding is kept as it was
seen first.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch.distributed as dist
from torch import Tensor, nn

from brctl.training.numbers.product_check import ProductCheck, WrongProduct
from brctl.training.numbers.rank_exchange import RankExchange
from brctl.training.numbers.sum_check import SumCheck, WrongSum
from brctl.training.progress import Progress
from brctl.training.replica_digests import Mismatch, ReplicaDigests, Replicas, replicas_of

LOOK_EVERY = 16
"""Steps. With a look in each the checks cost three times as much (decision 0412)."""
LARGEST_WRITTEN = 1e100
_KINDS = {Mismatch: "replica", WrongProduct: "product", WrongSum: "sum"}


class NumericChecks:
    """The checks of one rank."""

    def __init__(
        self,
        model: nn.Module,
        progress: Progress,
        replicas: Sequence[Replicas] | None = None,
        *,
        every: int = LOOK_EVERY,
    ) -> None:
        """Find what is replicated.

        Args:
            model: Any module; of DDP, FSDP2 and DTensors it is known what must be equal.
            progress: Where findings are told.
            replicas: What must be equal where the model does not say, as with Megatron's layers.
            every: Steps from look to look, the same on all ranks; 1 where steps take seconds.

        Raises:
            ValueError: Less than one step.
        """
        if every < 1:
            raise ValueError(f"a look every {every} steps: at least 1 is possible")
        self._every = every
        chosen = replicas_of(model) if replicas is None else replicas
        self._digests = [ReplicaDigests(each, steps=every) for each in chosen if each.tensors]
        self._products = ProductCheck(model)
        self._sums: SumCheck | None = None
        self._exchanges: dict[dist.ProcessGroup, RankExchange] = {}
        self._progress = progress
        self._found: dict[str, object] | None = None
        self._tell_compared()

    @property
    def found(self) -> dict[str, object] | None:
        """The first wrong number; None as long as there was none."""
        return self._found

    def before_step(self, step: int) -> None:
        """Say that a step begins; the forward pass of a look has one product checked."""
        if step % self._every == 0:
            self._products.arm(step)

    def before_reduction(self, step: int, gradient: Tensor) -> None:
        """Note this rank's own flat gradient, before the ranks sum or average it in place."""
        if step % self._every == 0:
            self._sums = SumCheck(step, gradient)

    def after_reduction(
        self, gradient: Tensor, group: dist.ProcessGroup | None = None, *, averaged: bool = True
    ) -> None:
        """Note what came of it; both go with the next exchange of the group that reduced."""
        sums, self._sums = self._sums, None
        if sums is not None:
            had = sums.reduced(gradient, dist.get_world_size(group) if averaged else 1)
            self._exchange(group).add(had, sums.judge)

    def after_update(self, step: int) -> None:
        """Digest what must be equal; take the answers to the look before, and send this one's."""
        for digests in self._digests:
            self._exchange(digests.group).add(digests.own(), partial(digests.judge, step))
        self._take_answers()
        if step % self._every == 0:
            self._send()

    def settle(self) -> bool:
        """Exchange what was kept since the last look, on every rank alike, and wait for it.

        Returns:
            Whether all numbers have been right so far.
        """
        self._take_answers()
        self._send()
        self._take_answers()
        return self._found is None

    def mark(self, checkpoint: Path, rank: int) -> None:
        """Write into a checkpoint's directory, before it is complete, what had been found by then.

        On every rank, as `settle`.

        Raises:
            OSError: It cannot be written.
        """
        marks = checkpoint / "numbers"
        path = marks / f"rank-{rank:05d}.json"
        if rank == 0:
            _remove_of_ranks_that_are_no_more(marks)
        if self.settle():
            with suppress(FileNotFoundError):
                path.unlink()
            return
        marks.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".new")
        partial.write_text(json.dumps(self._found))
        partial.replace(path)

    def _send(self) -> None:
        for exchange in self._exchanges.values():
            exchange.start()

    def _take_answers(self) -> None:
        for exchange in self._exchanges.values():
            for wrong in exchange.finish():
                self._tell(wrong)
        self._tell_compared()
        product = self._products.finish()
        if product is not None:
            self._tell(product)

    def _tell_compared(self) -> None:
        kind = self._digests[0].kind if self._digests else ""
        self._progress.compares(sum(each.compared for each in self._digests), kind)

    def _exchange(self, group: dist.ProcessGroup | None) -> RankExchange:
        """What is compared within one group goes in one collective."""
        chosen = group or dist.group.WORLD
        if chosen not in self._exchanges:
            self._exchanges[chosen] = RankExchange(chosen)
        return self._exchanges[chosen]

    def _tell(self, wrong: Mismatch | WrongProduct | WrongSum) -> None:
        told = {"kind": _KINDS[type(wrong)], **{k: _written(v) for k, v in asdict(wrong).items()}}
        self._found = self._found or told
        self._progress.saw_wrong_number(told)


def _written(value: object) -> object:
    """JSON has no infinity, and what reads it refuses a number that nothing measures."""
    return None if isinstance(value, float) and not abs(value) < LARGEST_WRITTEN else value


def _remove_of_ranks_that_are_no_more(marks: Path) -> None:
    """A step that is saved again by a smaller job is that of its own ranks alone."""
    for path in marks.glob("rank-*.json"):
        number = path.stem.removeprefix("rank-")
        if number.isdecimal() and int(number) >= dist.get_world_size():
            path.unlink(missing_ok=True)
