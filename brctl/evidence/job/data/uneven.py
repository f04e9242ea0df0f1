"""Who is late where only some steps of a job take far longer than they used to.

The usual step, and every median of a rank, is then as ever: a loader that stands still for a second
in every third step hides in all of them. The ranks' ledgers tell who made the long steps long.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from brctl.evidence.job.data.skew import BUSY_SHARE, LEAST_RANKS
from brctl.evidence.job.history import CAUSE_SHARE, SlowDown, uneven_since
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import RANKS_CHECK, SLOW_LOADER, UNEVEN_STEPS
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.rank_history import RankHistory

LEAST_LONG_STEPS = 5
"""Of fewer long steps the same ranks make most by chance (own)."""

MOST_OF_IT = 0.75
"""Of what long steps take more, the part that one node has to make (own)."""


@dataclass(frozen=True, slots=True)
class _LongStep:
    """A step that took far longer than usual.

    Attributes:
        late: Ranks that by themselves spend most of what it took longer.
        loads: They spend that waiting for their batches.
        load_s: The longest such wait, beyond the usual one.
        step_s: What the step took.
        more_s: What it took beyond the usual one.
    """

    late: frozenset[int]
    loads: bool
    load_s: float
    step_s: float
    more_s: float


@dataclass(frozen=True, slots=True)
class _Late:
    """The node that makes the long steps long.

    Attributes:
        ranks: Its ranks that do.
        steps: The long steps that it makes.
        of: How many long steps there are.
    """

    node: str
    ranks: frozenset[int]
    steps: Sequence[_LongStep]
    of: int

    @property
    def loads(self) -> bool:
        """Their batches make them late, and not their computing."""
        return sum(step.loads for step in self.steps) >= MOST_OF_IT * len(self.steps)

    def convicts(self, busy: bool) -> bool:
        """Whether no neighbour does this: a batch that all wait for, on busy hosts most of it."""
        share = median(step.load_s / step.step_s for step in self.steps)
        return self.loads and (not busy or share >= BUSY_SHARE)

    @property
    def subject(self) -> Subject:
        """The rank where it is one."""
        (rank, *others) = sorted(self.ranks)
        return Subject(self.node, "" if others else f"rank:{rank}")

    def describe(self) -> str:
        """Part of a sentence."""
        names = ", ".join(map(str, sorted(self.ranks)[:8]))
        one = len(self.ranks) == 1
        batch = "waits for its batch" if one else "wait for their batches"
        doing = batch if self.loads else "is late by itself" if one else "are late by themselves"
        who = f"{'rank' if one else 'ranks'} {names}"
        return f"in {len(self.steps)} of {self.of} long steps {who} {doing}"


def uneven_steps(status: JobStatus, busy: bool) -> Iterable[Evidence]:
    """Steps that take far longer on average, in a job whose usual step is as quick as ever.

    A hint, for neighbours make some steps late as well, and so does an evaluation that began; ranks
    of one node whose batches most of it is spent on are sure.

    Args:
        status: The job.
        busy: Its hosts have more to do than they can.
    """
    change = None if status.stalled or status.ended else uneven_since(status.history)
    if change is None:
        return
    late = _who_is_late(status, change)
    loads = late is not None and late.loads
    yield Evidence(
        kind=SLOW_LOADER if loads else UNEVEN_STEPS,
        subject=late.subject if late else Subject(""),
        weight=Weight.CONVICTS if late and late.convicts(busy) else Weight.HINTS,
        fault=FaultClass.DATA_LOADER if loads else FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text="most steps are as quick as before and some take far longer, without the very longest"
        f" {change.now_s:.3g} s on average since about step {change.since}, before"
        f" {change.before_s:.3g} s{f'; {late.describe()}' if late else ''}",
        raw=f"before_s={change.before_s} now_s={change.now_s} since={change.since}",
    )


def _who_is_late(status: JobStatus, change: SlowDown) -> _Late | None:
    """By the steps since the change that all ledgers have; None where nobody stands out."""
    ledgers = {view.rank: view.ledger for view in status.ranks if view.ledger is not None}
    if len(ledgers) < max(LEAST_RANKS, len(status.ranks)):
        return None
    first = max(change.since, *(ledger.first for ledger in ledgers.values()))
    last = min(ledger.last for ledger in ledgers.values())
    if last < first:
        return None
    same = {rank: ledger.part(first, last) for rank, ledger in ledgers.items()}
    late = _latest(_long_steps(same, change.growth_s), status.job.node_of)
    if late is None or 2 * len(late.ranks) > len(ledgers):
        return None
    made_s = sum(step.more_s for step in late.steps) / (last - first + 1)
    return late if made_s >= CAUSE_SHARE * change.growth_s else None


def _long_steps(ledgers: Mapping[int, RankHistory], growth_s: float) -> Sequence[_LongStep]:
    """The steps that took longer than usual by at least what the average grew."""
    totals = [median(parts) for parts in zip(*map(_totals, ledgers.values()), strict=True)]
    load = {rank: _beyond_usual(ledger.load_s) for rank, ledger in ledgers.items()}
    compute = {rank: _beyond_usual(ledger.compute_s) for rank, ledger in ledgers.items()}
    long = []
    for at, more_s in enumerate(_beyond_usual(totals)):
        if more_s >= growth_s:
            least = CAUSE_SHARE * more_s
            late = frozenset(r for r in ledgers if load[r][at] + compute[r][at] >= least)
            loads = bool(late) and all(load[rank][at] >= least for rank in late)
            load_s = max((load[rank][at] for rank in late), default=0.0)
            long.append(_LongStep(late, loads, load_s, totals[at], more_s))
    return long


def _totals(ledger: RankHistory) -> Sequence[float]:
    rows = zip(ledger.load_s, ledger.compute_s, ledger.wait_s, strict=True)
    return [sum(row) for row in rows]


def _beyond_usual(times: Sequence[float]) -> Sequence[float]:
    """Each without the lower quartile of all: up to three of four steps may be long ones."""
    usual_s = sorted(times)[len(times) // 4]
    return [time_s - usual_s for time_s in times]


def _latest(long: Sequence[_LongStep], node_of: Callable[[int], str]) -> _Late | None:
    """The node whose ranks alone make most of what the long steps take more."""
    by_node: dict[str, list[_LongStep]] = defaultdict(list)
    for step in long:
        nodes = {node_of(rank) for rank in step.late}
        if len(nodes) == 1:
            by_node[nodes.pop()].append(step)
    if not by_node:
        return None
    node, mine = max(by_node.items(), key=lambda item: _more_s(item[1]))
    if len(mine) < LEAST_LONG_STEPS or _more_s(mine) < MOST_OF_IT * _more_s(long):
        return None
    return _Late(node, frozenset.union(*(step.late for step in mine)), mine, len(long))


def _more_s(steps: Iterable[_LongStep]) -> float:
    return sum(step.more_s for step in steps)
