"""Who slows a job that still moves: the ranks that wait least are the ones the others wait for.

Waits are compared with the step, not with seconds: a quarter of a step of 0.4 s is as much as one
of 40 s. How sure a straggler is depends on how much of the step it costs, and on whether the job
was ever faster: pipeline stages wait differently for ever, and nobody broke.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from brctl.evidence.job.data.skew import BUSY_SHARE
from brctl.evidence.job.data.slow_ranks import given_more
from brctl.evidence.job.history import (
    LEAST_STEPS,
    LEAST_WINDOWS,
    SlowDown,
    slow_down,
)
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import RANKS_CHECK, SLOW_LOADER
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView

NOISE_S = 0.05
"""Below this a wait is what the scheduler of a busy host makes of it (own)."""

UNSEEN_NOISE_S = 0.1
"""The same where the job was never seen faster: then nothing but the wait speaks (own)."""

ALONE_FLOOR_S = 0.5
"""One step's wait, or one whose step was not measured, is told from here on (own)."""

GRAVE_SHARE = 0.3
"""What a rank costs the others, of a step, before it is a straggler whatever was before (own)."""

FAINT_SHARE = 0.1
"""Less than that, and still a lead where one node alone costs it and no past speaks (own)."""

ACCOUNTS_SHARE = 0.5
"""A late rank accounts for at least half of what the steps have become longer."""

COSTS_SHARE = 0.75
"""One that is late in every step costs the others nearly all of it; late in turn, a part (own)."""

NEAR_ZERO = 0.25
"""A straggler waits under a quarter of what the others wait, who wait for it."""

GAP_SHARE = 1 / 3
"""Between a straggler and the next rank lies so much of what it costs: ranks that are late in turn
wait for each other by every amount, and the least of them is no straggler (own)."""

HALF = 0.5
ROLE_SHARE = 1 / 3
"""More ranks than that for which the others always waited do other work than they (own)."""

UNREST = 4.0
"""Or less than they do by so many of their own median deviations."""


@dataclass(frozen=True, slots=True)
class _Waits:
    """The waits of ranks that live.

    Attributes:
        usual_s: What the ranks wait that wait for others: the median of the upper half.
        unrest_s: Their median deviation from it.
    """

    by_rank: Mapping[RankView, float]
    usual_s: float
    unrest_s: float

    def behind(self, floor_s: float) -> tuple[RankView, ...]:
        """The ranks that wait less than the others, by more than unrest and at least the floor."""
        late = tuple(
            view
            for view, wait_s in sorted(self.by_rank.items(), key=lambda item: item[0].rank)
            if self.usual_s - wait_s >= max(floor_s, UNREST * self.unrest_s)
        )
        return late if late and self._stand_apart(late) else ()

    def _stand_apart(self, late: Sequence[RankView]) -> bool:
        longest_s = max(self.by_rank[view] for view in late)
        rest_s = min(wait_s for view, wait_s in self.by_rank.items() if view not in late)
        return rest_s - longest_s >= GAP_SHARE * (self.usual_s - longest_s)


def _waits(status: JobStatus) -> _Waits | None:
    by_rank = {v: v.wait_s for v in status.ranks if v.wait_s is not None and v.alive}
    if len(by_rank) < 3:
        return None
    upper = sorted(by_rank.values())[len(by_rank) // 2 :]
    usual_s = median(upper)
    return _Waits(by_rank, usual_s, median(abs(wait_s - usual_s) for wait_s in upper))


def stragglers(status: JobStatus, busy: bool = False) -> Iterable[Evidence]:
    """Every rank the others wait for; convicted when the job was faster before it was late.

    Args:
        status: The job.
        busy: Its hosts have more to do than they can, and make ranks late in turn.
    """
    waits = _waits(status)
    if waits is None or status.stalled:
        return
    step_s = _step_s(waits.by_rank)
    change = slow_down(status.history)
    late = _late(waits, step_s, change, BUSY_SHARE if busy else GRAVE_SHARE)
    always = change is None and len(status.history.past) >= LEAST_WINDOWS
    faint = () if late or change or always else _faint(waits, step_s)
    if len(late) > HALF * len(waits.by_rank):
        return
    if always and len(late) > ROLE_SHARE * len(waits.by_rank) and _are_of_many_nodes(late):
        yield _in_turn(late[0], waits, _OTHER_WORK)
        return
    # Half of the ranks against the other half may as well be half of them too quick.
    sure = change is not None or (not always and len(late) < HALF * len(waits.by_rank))
    if busy and faint:
        yield _in_turn(faint[0], waits, _BUSY_HOSTS)
        return
    if late and step_s is None and change is None:
        yield _in_turn(late[0], waits, _ONE_STEP)
        return
    dearer = given_more(status)
    for view in late or faint:
        if view.rank in dearer:
            yield _in_turn(view, waits, _DEARER)
            continue
        always_late = sure and view in late and _costs_all(view, waits, change)
        yield _straggler(view, waits, step_s, Weight.CONVICTS if always_late else Weight.HINTS)


def _are_of_many_nodes(late: Sequence[RankView]) -> bool:
    """All ranks of one node are late for one reason, however few nodes there are."""
    return len({view.node for view in late}) > 1


def _costs_all(view: RankView, waits: _Waits, change: SlowDown | None) -> bool:
    """Whether what the others wait for it explains what the steps have become longer."""
    if change is None:
        return True
    return waits.usual_s - waits.by_rank[view] >= COSTS_SHARE * change.growth_s


def _faint(waits: _Waits, step_s: float | None) -> tuple[RankView, ...]:
    """The ranks of one node that alone cost a part of every step, in a job without a past."""
    if step_s is None:
        return ()
    late = waits.behind(max(UNSEEN_NOISE_S, FAINT_SHARE * step_s))
    alone = len({view.node for view in late}) == 1 and len({v.node for v in waits.by_rank}) > 2
    return tuple(v for v in late if waits.by_rank[v] <= NEAR_ZERO * waits.usual_s) if alone else ()


def _late(
    waits: _Waits, step_s: float | None, change: SlowDown | None, grave_share: float
) -> tuple[RankView, ...]:
    """The ranks that cost the others what counts, as far as the job's past can tell."""
    if change is None:
        floor_s = ALONE_FLOOR_S if step_s is None else max(UNSEEN_NOISE_S, grave_share * step_s)
        late = waits.behind(floor_s)
        return tuple(v for v in late if waits.by_rank[v] <= NEAR_ZERO * waits.usual_s)
    late = waits.behind(max(NOISE_S, ACCOUNTS_SHARE * change.growth_s))
    return late if _agrees(late, change) else ()


def _agrees(late: Iterable[RankView], change: SlowDown) -> bool:
    """Rank 0's own past: it waits longer than before exactly when another rank is late."""
    if change.wait_s is None:
        return True
    waits_longer = change.wait_s >= ACCOUNTS_SHARE * change.growth_s
    return waits_longer != any(view.rank == 0 for view in late)


def _step_s(views: Iterable[RankView]) -> float | None:
    """The usual step; None when it was not measured over several."""
    known = [v.step_s for v in views if v.step_s is not None and v.recent_steps >= LEAST_STEPS]
    return median(known) if known else None


_BUSY_HOSTS = "most hosts have more to do than they can"
_OTHER_WORK = "so it always was for many ranks, which may do other work than the others"
_DEARER = "its batches cost more than the others'"
_ONE_STEP = "that is one step, and with uneven data every step has such a rank"


def _in_turn(view: RankView, waits: _Waits, why: str) -> Evidence:
    """A rank that was late of late, where any rank may be late now and then."""
    return Evidence(
        kind="job.rank.late-in-turn",
        subject=Subject("", f"rank:{view.rank}"),
        weight=Weight.HINTS,
        fault=FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"the others wait {waits.usual_s:.2f} s a step for rank {view.rank}, but {why}:"
        " look again whether it is always this rank",
        raw=f"wait_s={waits.by_rank[view]} median={waits.usual_s}",
    )


def _straggler(view: RankView, waits: _Waits, step_s: float | None, weight: Weight) -> Evidence:
    wait_s = waits.by_rank[view]
    cost_s = waits.usual_s - wait_s
    of_step = f", {cost_s / step_s:.0%} of a step" if step_s else ""
    loads = view.load_s is not None and view.load_s >= ACCOUNTS_SHARE * cost_s
    batch = f"; {view.load_s:.2f} s of its step go into its batch" if loads else ""
    return Evidence(
        kind=SLOW_LOADER if loads else "job.rank.waits-least",
        subject=Subject(view.node, f"rank:{view.rank}"),
        weight=weight,
        fault=FaultClass.DATA_LOADER if loads else FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"rank {view.rank} waits {wait_s:.2f} s for the others,"
        f" who wait {waits.usual_s:.2f} s{of_step}: they wait for it{batch}",
        raw=f"wait_s={wait_s} median={waits.usual_s}",
    )
