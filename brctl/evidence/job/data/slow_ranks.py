"""What the ranks' own ledgers say of a job that is slow: data, loader or hardware, as evidence."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import fmean, median

from brctl.evidence.job.data.skew import (
    BUSY_SHARE,
    RECENT_STEPS,
    LoadComparison,
    RankLoad,
    SlowCause,
    compare_loads,
)
from brctl.evidence.job.history import slow_down
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import RANKS_CHECK, SLOW_LOADER
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus

_NAMED_RANKS = 8

MORE_COST = 1.1
"""Batches that cost a tenth more than the usual rank's make it late by themselves (own)."""


def told_apart(status: JobStatus) -> LoadComparison | None:
    """The ranks' loads side by side; None where they do not keep ledgers, or stand still."""
    if status.stalled:
        return None
    ledgers = {view.rank: view.ledger for view in status.ranks if view.ledger is not None}
    if len(ledgers) < len(status.ranks):
        return None
    return compare_loads(ledgers, {view.rank: view.node for view in status.ranks})


def slow_ranks(status: JobStatus, busy: bool) -> tuple[Evidence, ...] | None:
    """Evidence from the comparison; None where it says nothing and waits have to tell.

    A rank that was as quick as the others until a while ago, in a job that reports no cost, is
    late for a reason of that while: then its waits tell enough.

    Args:
        status: The job.
        busy: Its hosts have more to do than they can, and make ranks late in turn.
    """
    found = told_apart(status)
    if found is None or found.cause is SlowCause.EVEN:
        return None
    if found.cause is SlowCause.NOT_TOLD_APART and slow_down(status.history) is not None:
        return None
    return (*_EVIDENCE[found.cause](found, status, busy), *_beside(found, status, busy))


def _beside(found: LoadComparison, status: JobStatus, busy: bool) -> Iterable[Evidence]:
    """What costs less than the cause: a hint, for mending it alone leaves the job as slow."""
    if found.beside is None:
        return ()
    cause, culprits = found.beside
    alone = replace(found, cause=cause, culprits=culprits, beside=None)
    shown = _EVIDENCE[cause](alone, status, busy)
    return tuple(replace(item, weight=Weight.HINTS) for item in shown)


def given_more(status: JobStatus) -> frozenset[int]:
    """Ranks whose newest batches cost more than the others': late for what they are given."""
    costs = {
        view.rank: fmean(view.ledger.cost[-RECENT_STEPS:])
        for view in status.ranks
        if view.ledger is not None and view.ledger.cost
    }
    usual = median(costs.values()) if costs else 0.0
    return frozenset(rank for rank, cost in costs.items() if cost >= MORE_COST * usual > 0)


def not_told_apart(status: JobStatus) -> Iterable[Gap]:
    """Without cost from the job nobody knows whether data or hardware makes a rank late."""
    found = told_apart(status)
    causes = () if found is None else (found.cause, found.beside and found.beside[0])
    if SlowCause.NOT_TOLD_APART in causes:
        why = (
            "imbalance or hardware: not told apart, for the job reports no cost of its batches;"
            " exchange the ranks of two nodes: skew follows the data, hardware the node"
        )
        yield Gap(Subject(""), RANKS_CHECK, why)


def _hardware(found: LoadComparison, status: JobStatus, busy: bool) -> Iterable[Evidence]:
    for row in _of(found, found.culprits):
        more_s = row.residual_s or 0.0
        yield _evidence(
            "job.rank.residual", status, row, FaultClass.STRAGGLER_SLOW,
            _weight(more_s, found, busy),
            f"rank {row.rank} computes {more_s:.3g} s a step longer than its batches cost"
            f" ({row.residual:+.0f} z over {found.steps} steps), whatever it is given",
        )  # fmt: skip


def _weight(cost_s: float, found: LoadComparison, busy: bool) -> Weight:
    """A host that has more to do than it can makes loaders and ranks wait by itself."""
    sure = not busy or cost_s >= BUSY_SHARE * found.step_s
    return Weight.CONVICTS if sure else Weight.HINTS


def _loader(found: LoadComparison, status: JobStatus, busy: bool) -> Iterable[Evidence]:
    for row in _of(found, found.culprits):
        yield _evidence(
            SLOW_LOADER, status, row, FaultClass.DATA_LOADER, _weight(row.load_s, found, busy),
            f"rank {row.rank} waits {row.load_s:.2f} s of every step for its batch"
            f" ({found.cause}{f' {row.source}' if row.source else ''}), the others wait for it:"
            " its loader, cache or mount, and not its GPU",
        )  # fmt: skip


def _all_loaders(found: LoadComparison, status: JobStatus, busy: bool) -> Iterable[Evidence]:
    rows = found.ranks
    load_s = sum(row.load_s for row in rows) / len(rows)
    yield Evidence(
        kind=SLOW_LOADER,
        subject=Subject(""),
        weight=_weight(load_s, found, busy),
        fault=FaultClass.DATA_LOADER,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"all ranks wait {load_s:.2f} s of every step of {found.step_s:.2f} s for their batch:"
        " the loaders are too slow (workers, prefetch), or what all of them read from is",
    )


def _imbalance(found: LoadComparison, status: JobStatus, busy: bool) -> Iterable[Evidence]:
    yield Evidence(
        kind="job.data.imbalance",
        subject=Subject(""),
        weight=Weight.CONTEXT,
        fault=None,
        role=Role.CONTEXT,
        source=RANKS_CHECK,
        text=f"imbalance {found.slowest_to_mean:.2f}x (idle {found.idle:.0%}): the slowest rank of"
        f" a step follows its data (correlation {found.follows_cost or 0.0:.2f}); balance by"
        " length, not by machine",
    )


def _undecided(found: LoadComparison, status: JobStatus, busy: bool) -> Iterable[Evidence]:
    late = max(found.ranks, key=lambda row: row.longest)
    yield Evidence(
        kind="job.data.imbalance-or-hardware",
        subject=Subject("", f"rank:{late.rank}"),
        weight=Weight.HINTS,
        fault=FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"the rank that computes longest takes {found.computing_to_mean:.2f}x the mean, rank"
        f" {late.rank} on {_node(status, late.rank)} in {late.longest:.0%} of {found.steps} steps:"
        " imbalance or hardware, not told apart",
    )


_EVIDENCE: Mapping[SlowCause, Callable[[LoadComparison, JobStatus, bool], Iterable[Evidence]]] = {
    SlowCause.HARDWARE: _hardware,
    SlowCause.LOADER_OF_NODE: _loader,
    SlowCause.LOADER_OF_SOURCE: _loader,
    SlowCause.LOADERS: _loader,
    SlowCause.ALL_LOADERS: _all_loaders,
    SlowCause.IMBALANCE: _imbalance,
    SlowCause.NOT_TOLD_APART: _undecided,
}


def _of(found: LoadComparison, ranks: Iterable[int]) -> Iterable[RankLoad]:
    chosen = list(ranks)[:_NAMED_RANKS]
    return (row for row in found.ranks if row.rank in chosen)


def _node(status: JobStatus, rank: int) -> str:
    return status.job.node_of(rank)


def _evidence(
    kind: str, status: JobStatus, row: RankLoad, fault: FaultClass, weight: Weight, text: str
) -> Evidence:
    return Evidence(
        kind=kind,
        subject=Subject(_node(status, row.rank), f"rank:{row.rank}"),
        weight=weight,
        fault=fault,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=text,
        raw=f"load_s={row.load_s:.4g} compute_s={row.compute_s:.4g} residual={row.residual}",
    )
