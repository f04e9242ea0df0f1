"""Before the first step: count memory, make slots, start helpers, resume from what every shard has.

Every rank goes through the same steps, and after each all know whether all came through: a rank
that fails alone would leave the others waiting.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from brctl.training.checkpoints.agreement import Ranks
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.helper_process import HelperError, HelperProcess
from brctl.training.checkpoints.layout import Layout
from brctl.training.checkpoints.memory import (
    InsufficientMemoryError,
    bytes_needed,
    check_free_memory,
    rooms,
)
from brctl.training.checkpoints.parts import Parts
from brctl.training.checkpoints.placement import Placement, place_backups
from brctl.training.checkpoints.restore import Saved
from brctl.training.checkpoints.resume import (
    START_ANEW,
    Resume,
    StartError,
    say,
)
from brctl.training.checkpoints.settings import Settings
from brctl.training.checkpoints.slots import (
    DamagedSlotError,
    OtherVersionError,
    SlotFile,
    pages,
)
from brctl.training.checkpoints.spec import HeldCopies, HelperSpec
from brctl.training.checkpoints.wire import new_key, write_key

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Started:
    """What the steps need: this rank's slots, and from where the job went on."""

    file: SlotFile
    attempt: int
    resumed: Saved | None
    helper: HelperProcess | None


class Start:
    """One rank on its way to the first step."""

    def __init__(
        self, parts: Parts, layout: Layout, settings: Settings, ranks: Ranks, *, may_resume: bool
    ) -> None:
        self._parts = parts
        self._layout = layout
        self._settings = settings
        self._ranks = ranks
        self._directory = SlotDirectory(settings.directory)
        self._machine = layout.machine_of(ranks.rank)
        self._leads = ranks.rank == layout.ranks_on(self._machine)[0]
        self._placement = place_backups(layout)
        self._may_resume = may_resume
        self._helper: HelperProcess | None = None
        self._inventories: dict[int, HeldCopies] = {}

    def run(self) -> Started:
        """All of it.

        Raises:
            StartError: Something failed on some rank, as a machine that cannot hold its slots.
            NothingToResumeError: There are copies, and no step that all shards have.
        """
        capacities = self._agree_on_sizes()
        self._together(lambda: self._prepare_machine(capacities))
        self._together(self._start_helper)
        self._inventories = self._share_inventories()
        self._file = self._together(lambda: self._make_files(capacities))
        if not self._may_resume:
            return self._begin(None)
        arguments = (self._parts, self._layout, self._ranks, self._helper, self._inventories)
        return self._begin(Resume(*arguments).run(self._file))

    def without_copies(self) -> Started:
        """After NothingToResumeError: begin all the same, with empty slots."""
        self._together(self._spare_other_jobs)
        return self._begin(None)

    def abandon(self) -> None:
        """After an error: leave no helper behind."""
        if self._helper is not None:
            self._helper.close()

    def _begin(self, resumed: Saved | None) -> Started:
        self._together(lambda: self._tell_helper(resumed))
        self._together(self._join_helpers)
        return Started(self._file, _next_attempt(self._inventories), resumed, self._helper)

    def _agree_on_sizes(self) -> list[int]:
        """The size of every rank's slots; all must be of one job and one layout."""
        layout = self._layout.digest()
        size = self._together(self._parts.payload_bytes)
        own = {"job": self._settings.job, "layout": layout, "bytes": size}
        every = cast("list[dict[str, object]]", self._ranks.gather(own))
        for rank, other in enumerate(every):
            if (other["job"], other["layout"]) != (own["job"], layout):
                raise StartError(
                    f"rank {rank} has another job or other axes than rank {self._ranks.rank}"
                )
        if self._ranks.rank == 0:
            say(_coverage(self._placement))
        return [pages(cast("int", other["bytes"])) for other in every]

    def _prepare_machine(self, capacities: list[int]) -> None:
        if not self._leads:
            return
        self._directory.create()
        # Whoever holds it trains: its key and its slots are in use.
        os.close(self._directory.take_lock())
        self._directory.remove_unfinished()
        if not self._may_resume:
            self._spare_other_jobs()
            for path in self._directory.files():
                path.unlink()
        own = list(self._layout.ranks_on(self._machine))
        kept = self._kept_here()
        files = [*map(self._directory.own, own), *map(self._directory.peer, kept)]
        needed = bytes_needed([capacities[rank] for rank in (*own, *kept)], files)
        check_free_memory(needed, rooms(self._directory.path))

    def _spare_other_jobs(self) -> None:
        for path in self._directory.files() if self._leads else ():
            with suppress(DamagedSlotError):
                others = {h.job for _, h in SlotFile.open(path).whole()} - {self._settings.job}
                if others:
                    raise ValueError(
                        f"{path} holds steps of job {others.pop()!r}, which may go on from them: "
                        f"remove it, or give job {self._settings.job!r} another BRCTL_SLOT_DIR"
                    )

    def _start_helper(self) -> None:
        key = self._ranks.gather(new_key() if self._ranks.rank == 0 else None)[0]
        if self._leads:
            write_key(self._directory.key, str(key))
            self._helper = HelperProcess(self._spec())

    def _share_inventories(self) -> dict[int, HeldCopies]:
        own = self._helper.inventory.to_json() if self._helper else None
        every = self._ranks.gather(own)
        shared = [cast("Mapping[str, object]", found) for found in every if found is not None]
        return dict(enumerate(map(HeldCopies.from_json, shared)))

    def _make_files(self, capacities: list[int]) -> SlotFile:
        rank = self._ranks.rank
        for kept in self._kept_here():
            if self._placement.backups[kept] == rank:
                _open_or_create(self._directory.peer(kept), capacities[kept])
        return _open_or_create(self._directory.own(rank), capacities[rank])

    def _tell_helper(self, resumed: Saved | None) -> None:
        """All other steps are computed anew, so all machines forget them before any goes on."""
        if self._helper is not None:
            saved = [resumed.attempt, resumed.step] if resumed else None
            _raise_if(self._helper.ask({"do": "begin", "resume": saved}))

    def _join_helpers(self) -> None:
        addresses = {str(m): list(found.address) for m, found in self._inventories.items()}
        if self._helper is not None:
            _raise_if(self._helper.join(addresses))

    def _together(self, act: Callable[[], Result]) -> Result:
        """Do it on every rank, and fail on every rank if it failed on one."""
        problem, result = "", None
        try:
            result = act()
        except (
            OSError, ValueError, TypeError, HelperError, InsufficientMemoryError, DamagedSlotError,
        ) as exc:  # fmt: skip
            problem = str(exc)
        if problems := self._ranks.problems(problem):
            raise StartError("; ".join(problems[:3]))
        return cast("Result", result)

    def _kept_here(self) -> list[int]:
        """Ranks of other machines whose copies this machine keeps."""
        machine_of = self._layout.machine_of
        return [
            rank for rank, keeper in enumerate(self._placement.backups)
            if machine_of(keeper) == self._machine != machine_of(rank)
        ]  # fmt: skip

    def _spec(self) -> HelperSpec:
        settings, backups = self._settings, self._placement.backups
        own = self._layout.ranks_on(self._machine)
        return HelperSpec(
            job=settings.job, layout=self._layout.digest(), world_size=self._layout.world_size,
            machine=self._machine, own={r: self._layout.machine_of(backups[r]) for r in own},
            keeps=tuple(self._kept_here()), directory=settings.directory, disk=settings.disk,
            disk_every=settings.disk_every, host=settings.host,
        )  # fmt: skip


def _open_or_create(path: Path, capacity: int) -> SlotFile:
    """The file that is there keeps its copies; one of another size is of another state."""
    if not path.exists():
        return SlotFile.create(path, capacity)
    try:
        file = SlotFile.open(path)
    except OtherVersionError as exc:
        raise ValueError(f"{path}: {exc}; go on with that brctl, or {START_ANEW}") from exc
    except DamagedSlotError:
        file = None
    if file is not None and file.capacity == capacity:
        return file
    if file is not None and file.whole():
        raise ValueError(
            f"{path} holds a state of another size ({file.capacity} bytes a slot, this script "
            f"needs {capacity}): {START_ANEW}"
        )
    # Both at once may be more than fits.
    path.unlink()
    return SlotFile.create(path, capacity)


def _raise_if(problem: str) -> None:
    if problem:
        raise HelperError(problem)


def _next_attempt(inventories: Mapping[int, HeldCopies]) -> int:
    sources = (source.saved for found in inventories.values() for source in found.sources)
    never = (saved for found in inventories.values() for saved in found.never)
    return 1 + max((saved.attempt for saved in (*sources, *never)), default=0)


def _coverage(placement: Placement) -> str:
    if not placement.uncovered:
        return f"backups by {placement.rule}: any machine and any group may be lost"
    kinds = ", ".join(f"{x.lost} of {x.groups} by {x.kind}" for x in placement.uncovered)
    return f"backups by {placement.rule}; evictions that lose what is not on disk: {kinds}"
