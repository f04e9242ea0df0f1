"""Ranks that are late because they wait for a CPU: somebody else's work, or fewer CPUs than others.

A rank in a collective sleeps or polls; one that computes, is ready and has no CPU makes everybody
wait. How long ranks may stand ready is compared among them: on busy hosts all of them do.
"""

from collections.abc import Collection, Iterable, Mapping
from statistics import median

from brctl.evidence.job.busy_hosts import CPU_CHECK, LEAST_RANKS, of_ranks
from brctl.evidence.job.history import slow_down, usual_pace
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

WAITS_PCT = 40.0
"""A thread that is ready for so much of the time and has no CPU does far less work (own)."""

TIMES_THE_OTHERS = 3.0
"""And so many times what the usual rank waits."""

NARROW_SHARE = 0.5
"""A rank with at most half of the CPUs of the usual rank is bound otherwise than they are (own)."""

BOUND_OTHERWISE, SEEN_ONCE, ON_BUSY_HOSTS = 0.88, 0.75, 0.6
"""How sure one look of 0.4 s is: where a narrower set of CPUs explains it, where nothing does, and
where its host has more to do than it can, so that whoever computes waits (own)."""

WAITED_FOR_SHARE = 0.5
"""Whom all wait for waits at most so much of what the usual other rank does (own)."""

_INSTANT_S = 1e-6


def cpu_waits(status: JobStatus, reports: Collection[NodeReport], busy: bool) -> Iterable[Evidence]:
    """The few ranks that wait for a CPU while the others do not, in a job that steps.

    Args:
        status: The job.
        reports: What its nodes answered.
        busy: Its hosts have more to do than they can.
    """
    waits = of_ranks(status, reports, "waits_pct")
    mains = of_ranks(status, reports, "main_waits_pct")
    cpus = of_ranks(status, reports, "allowed")
    if status.stalled or len(waits) < LEAST_RANKS:
        return
    usual_pct = median(waits.values())
    starved = {
        rank: pct
        for rank, pct in sorted(waits.items())
        if pct >= WAITS_PCT and (_stands_out(pct, usual_pct) or _bound_otherwise(rank, cpus))
    }
    slower = slow_down(status.history) is not None
    for rank, pct in starved.items():
        bound, main = _bound_otherwise(rank, cpus), _main_starves(rank, mains)
        times = _times_the_others_wait(rank, status)
        waited_for = times is not None and times < WAITED_FOR_SHARE
        # The most delayed thread may be one that no step needs; the main one every step needs. On
        # busy hosts one look finds whoever computes just then, and no rank is waited for that
        # itself waits for the others longer than they do.
        by_main = bool(main) and not busy and (times or 0.0) <= 1 / WAITED_FOR_SHARE
        convicts = slower and _stands_out(pct, usual_pct) and bool(bound or waited_for or by_main)
        chance = busy and usual_pace(status) is True and not (bound or waited_for or main)
        alone = ON_BUSY_HOSTS if busy else SEEN_ONCE
        yield Evidence(
            kind="job.cpu.waits",
            subject=Subject(status.job.node_of(rank), f"rank:{rank}"),
            weight=_weight(convicts, chance),
            fault=FaultClass.STRAGGLER_SLOW,
            role=Role.CONTEXT if chance else Role.ROOT,
            source=CPU_CHECK,
            text=f"rank {rank} is ready and has no CPU for {pct:.0f} % of the time, the usual rank"
            f" for {usual_pct:.0f} %{main}{bound}",
            raw=f"waits_pct={pct:.1f} usual={usual_pct:.1f}",
            strength=(BOUND_OTHERWISE if bound else alone) if convicts else None,
        )


def _stands_out(pct: float, usual_pct: float) -> bool:
    """On busy hosts every rank waits; one with fewer CPUs is then a hint by that alone."""
    return pct >= TIMES_THE_OTHERS * usual_pct


def _weight(convicts: bool, chance: bool) -> Weight:
    """On busy hosts somebody always waits longest; where steps keep their pace, that is chance."""
    if chance:
        return Weight.CONTEXT
    return Weight.CONVICTS if convicts else Weight.HINTS


def _times_the_others_wait(rank: int, status: JobStatus) -> float | None:
    """What it spends in collectives, as times of what the usual other rank does, where known."""
    waits_s = {v.rank: v.wait_s for v in status.ranks if v.wait_s is not None and v.alive}
    own_s = waits_s.pop(rank, None)
    if own_s is None or not waits_s:
        return None
    return (own_s + _INSTANT_S) / (median(waits_s.values()) + _INSTANT_S)


def _main_starves(rank: int, mains: Mapping[int, float]) -> str:
    """Words where its main thread has no CPU, and the others' have; else ""."""
    pct = mains.get(rank, 0.0)
    if len(mains) < LEAST_RANKS or pct < WAITS_PCT or not _stands_out(pct, median(mains.values())):
        return ""
    return f", its main thread for {pct:.0f} %"


def _bound_otherwise(rank: int, cpus: Mapping[int, float]) -> str:
    """Words where a rank may use at most half of the CPUs of the usual rank; else ""."""
    usual, mine = median(cpus.values()) if cpus else 0.0, cpus.get(rank)
    if mine is None or mine > NARROW_SHARE * usual:
        return ""
    return f"; CPUs it may use: {mine:.0f}, the usual rank: {usual:.0f} (affinity or cpuset)"
