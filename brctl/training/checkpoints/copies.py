"""All copies that one machine holds of a job: its own ranks', its peers', in memory and on disk."""

import json
from collections.abc import Iterator
from pathlib import Path

from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.disk import StepFiles, open_path
from brctl.training.checkpoints.restore import Saved, ShardCopy, Tier
from brctl.training.checkpoints.slots import DamagedSlotError, Header, Slot, SlotFile, SlotState
from brctl.training.checkpoints.spec import Address, HeldCopies, HelperSpec

_LISTED_REFUSALS = 20


class MachineCopies:
    """The files of one machine, opened as they are found."""

    def __init__(self, spec: HelperSpec) -> None:
        self._spec = spec
        self._directory = SlotDirectory(spec.directory)
        self.disk = StepFiles(spec.disk / spec.job) if spec.disk else None
        self.own: dict[int, SlotFile] = {}
        self.kept: dict[int, SlotFile] = {}
        self._refused: list[str] = []

    def inspect_copies(self, address: Address) -> HeldCopies:
        """Open and verify everything; what is damaged or foreign is refused with its reason."""
        self.open_files()
        sources = (*self._memory_sources(), *self._disk_sources())
        refused = tuple(self._refused[:_LISTED_REFUSALS])
        return HeldCopies(sources, refused, read_never(self._directory.never), address)

    def open_files(self) -> None:
        """Map the files of slots that are there now."""
        self._refused.clear()
        for path in self._directory.files():
            files = self.own if path.suffix == ".own" else self.kept
            try:
                files[int(path.stem[5:])] = SlotFile.open(path)
            except (OSError, ValueError, DamagedSlotError) as exc:
                self._refused.append(f"{path}: {exc}")

    def find(self, rank: int, saved: Saved, tier: Tier) -> Slot:
        """A copy to send or load.

        Raises:
            DamagedSlotError: It is not here, or not whole.
            OSError: The disk cannot be read.
        """
        if tier is Tier.DISK and self.disk is not None:
            return self.disk.open(saved, rank)
        for files in (self.own, self.kept):
            slot = files[rank].find(saved) if rank in files else None
            if slot is not None:
                return slot
        raise DamagedSlotError(f"no copy of rank {rank} at step {saved.step}")

    def keep_only(self, saved: Saved | None) -> None:
        """Empty every slot of another step: the job goes on from this one."""
        for file in (*self.own.values(), *self.kept.values()):
            file.backed_up = 0
            for slot in file.slots:
                if slot is not (file.find(saved) if saved else None):
                    slot.state = SlotState.EMPTY

    def check(self, header: Header) -> None:
        """Refuse what belongs to another job or layout.

        Raises:
            DamagedSlotError: It does.
        """
        spec = self._spec
        if header.job != spec.job:
            raise DamagedSlotError(f"of job {header.job!r}, this is {spec.job!r}")
        if header.layout != spec.layout or header.world_size != spec.world_size:
            raise DamagedSlotError("of another parallel layout")

    def _memory_sources(self) -> Iterator[ShardCopy]:
        for files in (self.own, self.kept):
            for rank, file in files.items():
                for slot in file.slots:
                    yield from self._offer(slot, rank, Tier.MEMORY, file.path)

    def _disk_sources(self) -> Iterator[ShardCopy]:
        """Of a disk that all machines share, each looks at its own part."""
        ranks = {*self._spec.own, *self._spec.keeps}
        for path, rank in self.disk.all() if self.disk else ():
            if rank not in ranks:
                continue
            try:
                yield from self._offer(open_path(path), rank, Tier.DISK, path)
            except (OSError, DamagedSlotError) as exc:
                self._refused.append(f"{path}: {exc}")

    def _offer(self, slot: Slot, rank: int, tier: Tier, path: Path) -> Iterator[ShardCopy]:
        """An unfinished copy is what a crash leaves, and no damage."""
        if slot.state not in (SlotState.COPIED, SlotState.CHECKED):
            return
        try:
            if slot.state is SlotState.COPIED:
                slot.add_checksums()
            header = slot.verify()
        except DamagedSlotError as exc:
            self._refused.append(f"{path}: {exc}")
            if tier is Tier.MEMORY:
                # A good copy is to take its place, not that of the other slot.
                slot.state = SlotState.EMPTY
            return
        try:
            self.check(header)
        except DamagedSlotError as exc:
            self._refused.append(f"{path}: {exc}")
            return
        if header.rank != rank:
            self._refused.append(f"{path}: of rank {header.rank}")
            return
        yield ShardCopy(rank, header.saved, tier, self._spec.machine)


def read_never(path: Path) -> tuple[Saved, ...]:
    """Steps not to be offered again; none where there is no such list."""
    try:
        return tuple(
            Saved(int(attempt), int(step)) for attempt, step in json.loads(path.read_text())
        )
    except (OSError, ValueError, TypeError):
        return ()


def add_never(path: Path, saved: Saved) -> None:
    """Do not offer this step again."""
    listed = [[s.attempt, s.step] for s in {*read_never(path), saved}]
    partial = path.with_suffix(".new")
    partial.write_text(json.dumps(sorted(listed)))
    partial.replace(path)
