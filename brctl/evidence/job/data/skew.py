"""What the late rank of a slow job has: a slow loader, more work than the others, or slow hardware.

Time is regressed on cost over all ranks and many steps; what the cost does not explain is the
residual of a rank. Being slowest often proves nothing: with uneven data every step has a slowest
rank, and a slow GPU hides among them (ResiHP, arXiv 2605.06374: T = a N + b sum of squares).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import correlation, fmean, linear_regression, median, pstdev

from brctl.model.jobs.rank_history import RankHistory

LEAST_STEPS = 50
"""A residual averaged over fewer steps is noise (own; the prototype took 200)."""

LEAST_RANKS = 3
RESIDUAL_Z = 6.0
"""So many deviations from the other ranks is hardware; the largest healthy one was 3.4 (own)."""

RESIDUAL_SHARE = 0.03
"""And so much of a step, or it slows nobody (own)."""

LOAD_SHARE, LEAST_LOAD_S = 0.1, 0.1
"""A rank waits for its batch for a part of every step that counts, and is no noise (own)."""

LEAST_COST_S = 0.1
"""What the slowest rank costs the others in a step, below which it is unrest of a host (own)."""

LEAST_STEP_S = 1e-6
"""A shorter step is none: a ledger of zeros compares nothing (own)."""

LEAST_SPREAD = 1e-9
"""Costs, or times in steps, that differ by less are equal (own)."""

RECENT_STEPS = 20
"""Steps whose loads tell how the loaders are now."""

BUSY_SHARE = 0.6
"""Of a step, on hosts with more to do than they can: any rank of theirs may be late for a while."""

EVERYWHERE_SHARE = 0.8
IDLE_SHARE = 0.05
"""The ranks together wait so much for the slowest before it counts (own)."""

FOLLOWS_COST = 0.8
"""Correlation of time with cost, from which on it follows the data (own; 0.93 was measured)."""

_MAD_TO_DEVIATION = 1.4826
_LEAST_DEVIATION = 0.002
"""No rank is timed better than to this share of a step (own)."""


class SlowCause(StrEnum):
    """The rows of the truth table."""

    EVEN = "even"
    LOADER_OF_NODE = "loader of one node"
    LOADER_OF_SOURCE = "loader of one source"
    LOADERS = "loaders of some ranks"
    ALL_LOADERS = "all loaders"
    IMBALANCE = "imbalance"
    HARDWARE = "hardware"
    NOT_TOLD_APART = "imbalance or hardware"


Cause = tuple[SlowCause, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class RankLoad:
    """One rank over the steps that all ranks have.

    Attributes:
        cost: Of the mean of all ranks; None where none is reported.
        late: Share of the steps in which it was the last to come to the collective.
        longest: Share of the steps in which it computed longest, whatever it waited for its batch.
        residual: Deviations of its compute time from what its cost explains; None without cost.
        residual_s: The same in seconds of a step.
    """

    rank: int
    load_s: float
    compute_s: float
    wait_s: float
    cost: float | None
    late: float
    longest: float
    residual: float | None
    residual_s: float | None
    source: str


@dataclass(frozen=True, slots=True)
class LoadComparison:
    """All ranks of a job side by side.

    Attributes:
        culprits: Ranks the cause is about; empty where it is about all, or about none.
        beside: What costs less than the cause and is there as well, with its ranks.
        slowest_to_mean: How much longer the slowest rank of a step takes than the mean.
        computing_to_mean: The same of their computing alone.
        follows_cost: Correlation of compute time with cost; None without cost.
    """

    cause: SlowCause
    culprits: tuple[int, ...]
    ranks: tuple[RankLoad, ...]
    steps: int
    step_s: float
    slowest_to_mean: float
    computing_to_mean: float
    follows_cost: float | None
    beside: Cause | None = None

    @property
    def idle(self) -> float:
        """Share of the ranks' time spent waiting for the slowest of each step."""
        return 1.0 - 1.0 / self.slowest_to_mean


def compare_loads(
    histories: Mapping[int, RankHistory], nodes: Mapping[int, str]
) -> LoadComparison | None:
    """The truth table over the steps that every rank has; None where these are too few.

    Args:
        histories: The newest steps of each rank.
        nodes: The node of each rank.
    """
    common = _common(histories)
    if common is None:
        return None
    busy = _StepTimes({r: _sums(h.load_s, h.compute_s) for r, h in common.items()})
    computing = _StepTimes({r: h.compute_s for r, h in common.items()})
    step_s = median(sum(parts) for h in common.values() for parts in _rows(h))
    residuals, follows = _residuals(common, step_s)
    late, longest, mean_cost = busy.last(), computing.last(), _mean_cost(common)
    rows = tuple(
        _rank_load(rank, history, late[rank], longest[rank], residuals.get(rank), mean_cost)
        for rank, history in sorted(common.items())
    )
    slowest, computes = busy.slowest_to_mean(), computing.slowest_to_mean()
    (cause, culprits), beside = _causes(rows, nodes, step_s, (slowest, computes), follows)
    return LoadComparison(
        cause, culprits, rows, busy.count, step_s, slowest, computes, follows, beside
    )


class _StepTimes:
    """What every rank took in the same steps."""

    def __init__(self, by_rank: Mapping[int, Sequence[float]]) -> None:
        self._ranks = tuple(by_rank)
        self._steps = list(zip(*by_rank.values(), strict=True))

    @property
    def count(self) -> int:
        return len(self._steps)

    def slowest_to_mean(self) -> float:
        """How much longer the slowest rank of a step takes than the mean of all."""
        ratios = [max(step) / mean for step in self._steps if (mean := fmean(step)) > 0]
        return fmean(ratios) if ratios else 1.0

    def last(self) -> Mapping[int, float]:
        """The share of the steps in which each rank was the slowest."""
        won = Counter(self._ranks[step.index(max(step))] for step in self._steps)
        return {rank: won[rank] / self.count for rank in self._ranks}


def _common(histories: Mapping[int, RankHistory]) -> Mapping[int, RankHistory] | None:
    """The same steps of every rank."""
    if len(histories) < LEAST_RANKS:
        return None
    first = max(h.first for h in histories.values())
    last = min(h.last for h in histories.values())
    if last - first + 1 < LEAST_STEPS:
        return None
    return {rank: h.part(first, last) for rank, h in histories.items()}


def _sums(*series: Sequence[float]) -> list[float]:
    return [sum(parts) for parts in zip(*series, strict=True)]


def _rows(history: RankHistory) -> Sequence[tuple[float, ...]]:
    return list(zip(history.load_s, history.compute_s, history.wait_s, strict=True))


def _mean_cost(histories: Mapping[int, RankHistory]) -> float:
    known = [fmean(h.cost) for h in histories.values() if h.cost]
    return fmean(known) if len(known) == len(histories) else 0.0


def _rank_load(
    rank: int,
    history: RankHistory,
    late: float,
    longest: float,
    residual: tuple[float, float] | None,
    mean_cost: float,
) -> RankLoad:
    return RankLoad(
        rank,
        median(history.load_s[-RECENT_STEPS:]),
        median(history.compute_s),
        median(history.wait_s),
        fmean(history.cost) / mean_cost if mean_cost > 0 and history.cost else None,
        late,
        longest,
        residual[0] if residual else None,
        residual[1] if residual else None,
        history.source,
    )


def _residuals(
    histories: Mapping[int, RankHistory], step_s: float
) -> tuple[Mapping[int, tuple[float, float]], float | None]:
    """Deviations and seconds that cost does not explain, by rank; and how time follows cost."""
    if step_s < LEAST_STEP_S or not all(h.cost for h in histories.values()):
        return {}, None
    dearest = max(cost for h in histories.values() for cost in h.cost) or 1.0
    costs = [cost / dearest for h in histories.values() for cost in h.cost]
    times = [seconds for h in histories.values() for seconds in h.compute_s]
    varies = _varies(costs, 1.0) and _varies(times, step_s)
    slope, start = linear_regression(costs, times) if varies else (0.0, fmean(times))
    left = {
        rank: [t - start - slope * c / dearest for t, c in zip(h.compute_s, h.cost, strict=True)]
        for rank, h in histories.items()
    }
    means = {rank: fmean(values) for rank, values in left.items()}
    usual = median(means.values())
    spread = median(abs(mean - usual) for mean in means.values())
    noise = (
        median(pstdev(values) for values in left.values()) / len(next(iter(left.values()))) ** 0.5
    )
    deviation = max(_MAD_TO_DEVIATION * spread, noise, _LEAST_DEVIATION * step_s)
    found = {r: ((mean - usual) / deviation, mean - usual) for r, mean in means.items()}
    return found, correlation(costs, times) if varies else 0.0


def _varies(values: Sequence[float], unit: float) -> bool:
    """Whether they differ by enough for a line: squares of the smallest numbers are zero."""
    return max(values) - min(values) > LEAST_SPREAD * unit


def _causes(
    rows: Sequence[RankLoad],
    nodes: Mapping[int, str],
    step_s: float,
    slowest: tuple[float, float],
    follows_cost: float | None,
) -> tuple[Cause, Cause | None]:
    """What makes steps longest, and what else is there.

    `slowest` is how much longer the slowest rank takes than the mean: in all, and computing.
    """
    busy, computing = slowest
    loading = [row for row in rows if row.load_s >= max(LEAST_LOAD_S, LOAD_SHARE * step_s)]
    hardware = _hardware(rows, step_s)
    if not loading:
        return hardware[0] if hardware else _by_cost(step_s, busy, follows_cost), None
    loaders = _of_loaders(loading, rows, nodes)
    other = hardware or _of_either(rows, step_s, computing, follows_cost)
    if other is None:
        return loaders, None
    computes, more_s = other
    load_s = max(row.load_s for row in loading)
    return (computes, loaders) if more_s >= load_s else (loaders, computes)


def _hardware(rows: Sequence[RankLoad], step_s: float) -> tuple[Cause, float] | None:
    """Ranks slow whatever they are given, and the seconds of a step the slowest of them costs."""
    odd = [row for row in rows if _is_odd(row, step_s)]
    if not odd or 2 * len(odd) >= len(rows):
        return None
    ranks = tuple(row.rank for row in odd)
    return (SlowCause.HARDWARE, ranks), max(row.residual_s or 0.0 for row in odd)


def _of_either(
    rows: Sequence[RankLoad], step_s: float, computing: float, follows_cost: float | None
) -> tuple[Cause, float] | None:
    """Computing that lasts longer on some rank, in a job that says nothing of its cost."""
    cause = _by_cost(step_s, computing, follows_cost)
    if cause[0] is not SlowCause.NOT_TOLD_APART:
        return None
    return cause, (computing - 1.0) * fmean(row.compute_s for row in rows)


def _by_cost(step_s: float, slowest_to_mean: float, follows_cost: float | None) -> Cause:
    idle = 1.0 - 1.0 / slowest_to_mean
    if idle < IDLE_SHARE or idle * step_s < LEAST_COST_S:
        return SlowCause.EVEN, ()
    if follows_cost is None:
        return SlowCause.NOT_TOLD_APART, ()
    return (SlowCause.IMBALANCE if follows_cost >= FOLLOWS_COST else SlowCause.EVEN), ()


def _is_odd(row: RankLoad, step_s: float) -> bool:
    if row.residual is None or row.residual_s is None:
        return False
    return row.residual >= RESIDUAL_Z and row.residual_s >= max(
        LEAST_COST_S, RESIDUAL_SHARE * step_s
    )


def _of_loaders(
    loading: Sequence[RankLoad], rows: Sequence[RankLoad], nodes: Mapping[int, str]
) -> Cause:
    ranks = tuple(row.rank for row in loading)
    if len(loading) >= EVERYWHERE_SHARE * len(rows):
        return SlowCause.ALL_LOADERS, ()
    if len({nodes[rank] for rank in ranks}) == 1:
        return SlowCause.LOADER_OF_NODE, ranks
    sources = {row.source for row in loading}
    of_source = {row.rank for row in rows if row.source in sources}
    if len(sources) == 1 and "" not in sources and of_source == set(ranks):
        return SlowCause.LOADER_OF_SOURCE, ranks
    return SlowCause.LOADERS, ranks
