"""Load the newest step that every shard has, from wherever each shard's copy is."""

import hashlib
import sys
from collections.abc import Mapping

import torch
from torch import Tensor

from brctl.training.checkpoints.agreement import Ranks
from brctl.training.checkpoints.helper_process import HelperError, HelperProcess
from brctl.training.checkpoints.layout import Layout
from brctl.training.checkpoints.parts import Parts
from brctl.training.checkpoints.restore import Choice, Saved, ShardCopy, Tier, choose_restore
from brctl.training.checkpoints.slots import DamagedSlotError, SlotFile
from brctl.training.checkpoints.spec import HeldCopies
from brctl.training.checkpoints.state import ForeignStateError, local, read_state

START_ANEW = (
    "mend that, or start anew on purpose: resume=False throws away what memory holds of this job"
)
_SHOWN = 5


class StartError(Exception):
    """A job cannot start with checkpoints of every step; says on which ranks and why."""


class NothingToResumeError(StartError):
    """There are copies of this job, and no step of which every shard has a good one.

    Attributes:
        loaded: Whether weights were loaded on the way, which nobody must train on.
    """

    def __init__(self, reason: str, *, loaded: bool) -> None:
        super().__init__(reason)
        self.loaded = loaded


class Resume:
    """One rank's part in it; all ranks go through it together."""

    def __init__(
        self,
        parts: Parts,
        layout: Layout,
        ranks: Ranks,
        helper: HelperProcess | None,
        inventories: Mapping[int, HeldCopies],
    ) -> None:
        self._parts = parts
        self._layout = layout
        self._ranks = ranks
        self._helper = helper
        self._inventories = inventories
        self._loaded = False

    def run(self, file: SlotFile) -> Saved | None:
        """Load; None where nothing of this job is anywhere.

        Args:
            file: This rank's own slots, into which its shard is brought.

        Raises:
            NothingToResumeError: There are copies, but no step that all shards can be loaded from.
        """
        if self._helper is not None:
            say(*self._helper.inventory.refused)
        found = self._inventories.values()
        sources = [source for inventory in found for source in inventory.sources]
        refused = [line for inventory in found for line in inventory.refused]
        never = {saved for inventory in found for saved in inventory.never}
        while (choice := choose_restore(self._layout, sources, never)) is not None:
            problems = self._try(choice, file)
            if not problems:
                if self._ranks.rank == 0:
                    say(_told(choice, self._layout))
                return choice.saved
            refused += problems
            never.add(choice.saved)
        if sources or refused:
            raise NothingToResumeError(_nothing(sources, refused), loaded=self._loaded)
        return None

    def _try(self, choice: Choice, file: SlotFile) -> list[str]:
        """The problems of all ranks; none if all have loaded the step."""
        return (
            self._ranks.problems(self._fetch(choice))
            or self._ranks.problems(self._load(choice.saved, file))
            or self._ranks.problems(self._compare_replicas())
        )

    def _fetch(self, choice: Choice) -> str:
        """Bring this machine's shards into its memory; done by the rank that has the helper."""
        if self._helper is None:
            return ""
        machine = self._layout.machine_of(self._ranks.rank)
        for rank in self._layout.ranks_on(machine):
            source = choice.sources[rank]
            if (source.tier, source.machine) != (Tier.MEMORY, machine):
                try:
                    problem = self._helper.ask(self._command(source))
                except HelperError as exc:
                    problem = str(exc)
                if problem:
                    return f"rank {rank} from machine {source.machine}: {problem}"
        return ""

    def _command(self, source: ShardCopy) -> dict[str, object]:
        return {
            "do": "fetch",
            "rank": source.rank,
            "attempt": source.saved.attempt,
            "step": source.saved.step,
            "tier": source.tier.value,
            "from": self._inventories[source.machine].address,
        }

    def _load(self, saved: Saved, file: SlotFile) -> str:
        self._loaded = True
        slot = file.find(saved)
        if slot is None:
            return f"step {saved.step} is not in {file.path}"
        try:
            header = slot.header()
            self._parts.load(read_state(slot.payload[: header.payload_bytes], header.table_at))
        except (DamagedSlotError, ForeignStateError) as exc:
            return f"step {saved.step} of {file.path}: {exc}"
        return ""

    def _compare_replicas(self) -> str:
        """All ranks of a DP group hold the same weights; who differs from the first says so."""
        digest = hashlib.blake2b(digest_size=16)
        for name, weight in self._parts.replicated():
            digest.update(name.encode())
            digest.update(_content(weight))
        every = self._ranks.gather(digest.hexdigest())
        keys = [self._layout.replica_key(rank) for rank in range(len(every))]
        first = keys.index(keys[self._ranks.rank])
        same = every[first] == every[self._ranks.rank]
        return "" if same else f"the weights loaded differ from those of rank {first}, its replica"


def say(*lines: str) -> None:
    """Tell the person who reads the rank's log."""
    for line in lines:
        sys.stderr.write(f"brctl: {line}\n")


def _content(weight: Tensor) -> memoryview:
    flat = local(weight).cpu().contiguous().flatten()
    return memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")


def _told(choice: Choice, layout: Layout) -> str:
    """From where a job goes on: who meant to start another one under its name sees it here."""
    away = sum(s.machine != layout.machine_of(s.rank) for s in choice.sources.values())
    disk = sum(source.tier is Tier.DISK for source in choice.sources.values())
    return (
        f"goes on from step {choice.saved.step} of attempt {choice.saved.attempt}: "
        f"{len(choice.sources)} shards, {disk} from disks, {away} from other machines"
    )


def _nothing(sources: list[ShardCopy], refused: list[str]) -> str:
    steps = sorted({source.saved.step for source in sources})
    held = (
        f"no step is whole on every rank (parts of steps {steps})" if steps else "no copy is good"
    )
    reasons = "".join(f"\n  {line}" for line in refused[:_SHOWN])
    return f"{held}; {START_ANEW}{reasons}"
