"""What the helper of a machine is told when it is started, and what it answers."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from brctl.training.checkpoints.restore import Saved, ShardCopy, Tier

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class HelperSpec:
    """One machine's part of a job.

    Attributes:
        layout: Digest of the parallel layout.
        own: Ranks of this machine, and the machine that keeps the copy of each.
        keeps: Ranks of other machines whose copies are kept here.
        disk: Where every `disk_every`-th step is written to; None for memory only.
        host: Address that other machines reach this one by.
        port: TCP port to listen on; 0 for any.
        verifies: Whether to verify what is there first; not while ranks are writing.
    """

    job: str
    layout: str
    world_size: int
    machine: int
    own: Mapping[int, int]
    keeps: tuple[int, ...]
    directory: Path
    disk: Path | None = None
    disk_every: int = 100
    host: str = "127.0.0.1"
    port: int = 0
    verifies: bool = True

    def to_line(self) -> str:
        """One line of JSON."""
        disk = None if self.disk is None else str(self.disk)
        return json.dumps({**asdict(self), "directory": str(self.directory), "disk": disk})

    @classmethod
    def from_line(cls, line: str) -> "HelperSpec":
        fields = json.loads(line)
        own = {int(rank): machine for rank, machine in fields.pop("own").items()}
        disk = fields.pop("disk")
        return cls(
            own=own, keeps=tuple(fields.pop("keeps")), directory=Path(fields.pop("directory")),
            disk=None if disk is None else Path(disk), **fields,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class HeldCopies:
    """What one machine still holds of a job.

    Attributes:
        sources: Whole copies, checksums verified.
        refused: Copies that are not offered, each with its reason.
        never: Steps that led to a loss that is no number.
        address: Where this machine's helper answers.
    """

    sources: tuple[ShardCopy, ...]
    refused: tuple[str, ...]
    never: tuple[Saved, ...]
    address: Address

    def to_json(self) -> dict[str, object]:
        sources = [[s.rank, *saved_list(s.saved), s.tier.value, s.machine] for s in self.sources]
        never = [saved_list(saved) for saved in self.never]
        return {
            "sources": sources,
            "refused": self.refused,
            "never": never,
            "address": self.address,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> "HeldCopies":
        sources, refused, never, address = (
            fields[name] for name in ("sources", "refused", "never", "address")
        )
        if not (
            isinstance(sources, list)
            and isinstance(refused, list)
            and isinstance(never, list)
            and isinstance(address, list)
        ):
            raise TypeError("an inventory of another shape")  # fmt: skip
        return cls(
            tuple(ShardCopy(r, Saved(a, s), Tier(tier), m) for r, a, s, tier, m in sources),
            tuple(refused), tuple(Saved(a, s) for a, s in never), (address[0], address[1]),
        )  # fmt: skip


def saved_list(saved: Saved) -> list[int]:
    """Attempt and step."""
    return [saved.attempt, saved.step]
