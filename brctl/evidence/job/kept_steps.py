"""Which steps of a job are kept in which nodes' memory, and what is left without some nodes. Pure.

The same choice as the ranks make when they start (`brctl/training/checkpoints/restore.py`): one
step for all, the newest of which every rank's state is somewhere. A later attempt is newer whatever
its step: a machine back from repair may hold a step of the same number that was thrown away since.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import NodeReport, ProbeStatus, Value

CHECK = "job.slots"
_PREFIX = "job.slots."
_SLOTS_LIMIT = 8192
_NUMBER_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True, order=True)
class KeptStep:
    """A step, and the start of the job that computed it."""

    attempt: int
    step: int


@dataclass(frozen=True, slots=True)
class KeptSlot:
    """One rank's state of one step on one node.

    Attributes:
        own: The rank runs there; else it is the copy for another node.
    """

    node: str
    rank: int
    own: bool
    kept: KeptStep


@dataclass(frozen=True, slots=True)
class KeptSteps:
    """What nodes say they keep.

    Attributes:
        never: Steps that led to a loss that is no number; nobody resumes from them.
        silent: Why nothing is known of a node, by node.
        notes: What a node could not read, with its name.
    """

    job: Job
    slots: tuple[KeptSlot, ...]
    never: frozenset[KeptStep]
    silent: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def newest(self, without: Collection[str] = ()) -> KeptStep | None:
        """The newest step that every rank has on some node but these; None where there is none."""
        ranks: dict[KeptStep, set[int]] = {}
        for slot in self._outside(without):
            ranks.setdefault(slot.kept, set()).add(slot.rank)
        whole = (kept for kept, found in ranks.items() if len(found) == self.job.world_size)
        return max((kept for kept in whole if kept not in self.never), default=None)

    def uncopied(self, without: Collection[str] = ()) -> tuple[int, ...]:
        """Ranks of whose state no step is left on any node but these."""
        left = {slot.rank for slot in self._outside(without)}
        return tuple(rank for rank in range(self.job.world_size) if rank not in left)

    def ranks_at(self, kept: KeptStep, *, own: bool) -> int:
        """How many ranks have this step on their own node, or on another."""
        return len({s.rank for s in self.slots if s.kept == kept and s.own is own})

    def lost_with(self) -> tuple[tuple[str, int, int], ...]:
        """Nodes and parallel groups: how many of how many lose a rank's last copy if they go."""
        kinds: list[tuple[str, list[tuple[str, ...]]]] = [("node", [(n,) for n in self.job.nodes])]
        for axis, size in self.job.axes:
            if size > 1:
                groups = [tuple(map(self.job.node_of, ranks)) for ranks in self.job.groups(axis)]
                kinds.append((axis, groups))
        return tuple(
            (kind, sum(bool(self.uncopied(nodes)) for nodes in groups), len(groups))
            for kind, groups in kinds
        )

    def _outside(self, without: Collection[str]) -> Iterator[KeptSlot]:
        return (slot for slot in self.slots if slot.node not in without)


def read_kept_steps(job: Job, reports: Iterable[NodeReport]) -> KeptSteps:
    """What these nodes keep; one that gave no answer is silent, which is not the same as empty."""
    slots: list[KeptSlot] = []
    never: set[KeptStep] = set()
    silent: dict[str, str] = {}
    notes: list[str] = []
    for report in reports:
        result = report.result_of(CHECK)
        if result is None or result.status is not ProbeStatus.MEASURED:
            silent[report.node] = report.why_silent or next(iter(report.notes), "no measurement")
            continue
        notes += [f"{report.node}: {note}" for note in result.notes]
        slots += _slots(job, report)
        never |= _never(report)
    return KeptSteps(job, tuple(slots), frozenset(never), silent, tuple(notes))


def _slots(job: Job, report: NodeReport) -> Iterator[KeptSlot]:
    rows: dict[str, dict[str, Value]] = {}
    for item in report.measured_by(CHECK):
        if item.subject.startswith("slot:") and len(rows) < _SLOTS_LIMIT:
            rows.setdefault(item.subject, {})[item.name.removeprefix(_PREFIX)] = item.value
    for row in rows.values():
        numbers = [_number(row.get(name)) for name in ("rank", "attempt", "step")]
        rank, attempt, step = numbers
        if rank is None or attempt is None or step is None or row.get("sound") is False:
            continue
        if rank < job.world_size:
            own = row.get("own") is True and rank in job.ranks_on(report.node)
            yield KeptSlot(report.node, rank, own, KeptStep(attempt, step))


def _never(report: NodeReport) -> set[KeptStep]:
    found = set()
    for item in report.measured_by(CHECK):
        attempt, _, step = str(item.value).partition("-")
        if item.name == f"{_PREFIX}never" and attempt.isdecimal() and step.isdecimal():
            found.add(KeptStep(int(attempt[:18]), int(step[:18])))
    return found


def _number(value: Value | None) -> int | None:
    return value if type(value) is int and 0 <= value < _NUMBER_LIMIT else None
