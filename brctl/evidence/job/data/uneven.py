"""Who is late where only some steps of a job take far longer than they used to.

The usual step, and every median of a rank, is then as ever: a loader that stands still for a second
in every third step hides in all of them. The ranks' ledgers tell who made the long steps long.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from brctl.evidence.job.data.skew import BUSY_SHARE
from brctl.evidence.job.history import CAUSE_SHARE, SlowDown, uneven_since
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import RANKS_CHECK, SLOW_LOADER, UNEVEN_STEPS
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.rank_history import RankHistory

LEAST_LONG_STEPS = 5
"""Of fewer long steps the same rank makes most by chance (own)."""

MOST_LONG_STEPS = 0.75
"""The rank that makes so many of the long steps long is the one (own)."""

LEAST_RANKS = 3


@dataclass(frozen=True, slots=True)
class _LongStep:
    """A step that took far longer than usual, and the rank that came last to its collectives.

    Attributes:
        load_s: What that rank waited for its batch, beyond what it usually does.
        own_s: The same with its computing.
        more_s: What the step took beyond the usual one.
    """

    rank: int
    load_s: float
    own_s: float
    step_s: float
    more_s: float


@dataclass(frozen=True, slots=True)
class _Late:
    """The rank that makes the long steps long.

    Attributes:
        of: How many long steps there are.
    """

    rank: int
    steps: Sequence[_LongStep]
    of: int

    @property
    def loads(self) -> bool:
        """Its batches make it late, and not its computing."""
        by_load = [step for step in self.steps if step.load_s >= CAUSE_SHARE * step.more_s]
        return len(by_load) >= MOST_LONG_STEPS * len(self.steps)

    @property
    def loads_most_of_them(self) -> bool:
        """Its batches take so much of the long steps that no busy host accounts for it."""
        return median(step.load_s / step.step_s for step in self.steps) >= BUSY_SHARE


def uneven_steps(status: JobStatus, busy: bool) -> Iterable[Evidence]:
    """Steps that take far longer on average, in a job whose usual step is as quick as ever.

    A hint, for neighbours make some steps late as well, and so does an evaluation that began; a
    rank for whose batch all others wait in nearly every long step is sure.

    Args:
        status: The job.
        busy: Its hosts have more to do than they can.
    """
    change = None if status.stalled or status.ended else uneven_since(status.history)
    if change is None:
        return
    late = _who_is_late(status, change)
    loads = late is not None and late.loads
    sure = loads and late is not None and (not busy or late.loads_most_of_them)
    yield Evidence(
        kind=SLOW_LOADER if loads else UNEVEN_STEPS,
        subject=Subject(status.job.node_of(late.rank), f"rank:{late.rank}")
        if late
        else Subject(""),
        weight=Weight.CONVICTS if sure else Weight.HINTS,
        fault=FaultClass.DATA_LOADER if loads else FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text="most steps are as quick as before and some take far longer, without the very longest"
        f" {change.now_s:.3g} s on average since about step {change.since}, before"
        f" {change.before_s:.3g} s{_words(late)}",
        raw=f"before_s={change.before_s} now_s={change.now_s} since={change.since}",
    )


def _words(late: _Late | None) -> str:
    if late is None:
        return ""
    doing = "waits for its batch" if late.loads else "is late by itself"
    return f"; in {len(late.steps)} of {late.of} long steps rank {late.rank} {doing}"


def _who_is_late(status: JobStatus, change: SlowDown) -> _Late | None:
    """By the steps that all ledgers have; None where some rank keeps none, or nobody stands out."""
    ledgers = {view.rank: view.ledger for view in status.ranks if view.ledger is not None}
    if len(ledgers) < max(LEAST_RANKS, len(status.ranks)):
        return None
    first = max(ledger.first for ledger in ledgers.values())
    last = min(ledger.last for ledger in ledgers.values())
    if last < first:
        return None
    same = {rank: ledger.part(first, last) for rank, ledger in ledgers.items()}
    return _latest(_long_steps(same, change.growth_s))


def _long_steps(ledgers: Mapping[int, RankHistory], growth_s: float) -> Sequence[_LongStep]:
    """The steps that took longer than usual by at least what the average grew."""
    totals = [median(parts) for parts in zip(*map(_totals, ledgers.values()), strict=True)]
    load = {rank: _beyond_usual(ledger.load_s) for rank, ledger in ledgers.items()}
    compute = {rank: _beyond_usual(ledger.compute_s) for rank, ledger in ledgers.items()}
    long = []
    for at, more_s in enumerate(_beyond_usual(totals)):
        if more_s >= growth_s:
            own_s, rank = max((load[rank][at] + compute[rank][at], rank) for rank in ledgers)
            long.append(_LongStep(rank, load[rank][at], own_s, totals[at], more_s))
    return long


def _totals(ledger: RankHistory) -> Sequence[float]:
    rows = zip(ledger.load_s, ledger.compute_s, ledger.wait_s, strict=True)
    return [sum(row) for row in rows]


def _beyond_usual(times: Sequence[float]) -> Sequence[float]:
    """Each without the lower quartile of all: up to three of four steps may be long ones."""
    usual_s = sorted(times)[len(times) // 4]
    return [time_s - usual_s for time_s in times]


def _latest(long: Sequence[_LongStep]) -> _Late | None:
    """The rank that spends itself what most of the long steps take more."""
    late = [step for step in long if step.own_s >= CAUSE_SHARE * step.more_s]
    if len(long) < LEAST_LONG_STEPS or not late:
        return None
    rank, count = Counter(step.rank for step in late).most_common(1)[0]
    if count < MOST_LONG_STEPS * len(long):
        return None
    return _Late(rank, [step for step in late if step.rank == rank], len(long))
