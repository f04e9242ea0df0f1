"""Judge tests between pairs of nodes: each node is in two pairs, so one bad node stands out."""

import statistics
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from brctl.model.localisation import Path
from brctl.model.sweeps.report import Measurement, Value

SLOW_SHARE = 0.7
"""Own: pairs in one fleet differ by some percent; below this share of the median a path is bad."""

LATE_RATIO, LATE_FLOOR_US = 4.0, 100.0
"""Own: a few hops of switches add microseconds; this many times the usual delay is a sick path."""

ONE_WAY_SHARE = 0.5
"""Own: both ways of a sound cable carry the same; half of it one way is a bad lane or port."""

LEAST_PAIRS = 4
"""With fewer, the median is made of the pairs it is to judge."""

CHECK = "fabric.pairs"
Pair = tuple[str, str]


class PairState(StrEnum):
    """What became of one test of one pair."""

    OK = "ok"
    SLOW = "slow"
    WRONG = "wrong"
    SILENT = "silent"
    NOT_MEASURED = "not-measured"


BAD = (PairState.SLOW, PairState.WRONG, PairState.SILENT)
HARD = (PairState.WRONG, PairState.SILENT)


@dataclass(frozen=True, slots=True)
class PairResult:
    """One operation between two nodes.

    Attributes:
        failed: Repetitions with a wrong bit or no answer; None when nothing was measured.
        silent: The pair did not answer in time.
        gb_per_s: Bus bandwidth as nccl-tests defines it; of a pingpong the slower way's.
        why: What was said when it did not go well.
    """

    pair: Pair
    op: str
    reps: int
    failed: int | None
    silent: bool = False
    gb_per_s: float | None = None
    why: str = ""
    path: Path | None = None


def ring_rounds(nodes: Sequence[str]) -> tuple[tuple[Pair, ...], ...]:
    """Neighbours in a ring, in rounds of pairs that share no node."""
    edges = list(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    if len(nodes) < 3:
        return ((edges[0],),) if len(nodes) == 2 else ()
    closing = edges.pop() if len(nodes) % 2 else None
    rounds = (tuple(edges[0::2]), tuple(edges[1::2]))
    return (*rounds, (closing,)) if closing else rounds


def judge_pairs(results: Sequence[PairResult]) -> tuple[PairState, ...]:
    """The state of each result; a slow pair is slow in every operation that was measured.

    A neighbour's load slows one operation; a path that is bad slows all of them.
    """
    usual = {op: _usual(results, op) for op in {result.op for result in results}}
    quick = {r.pair for r in results if r.gb_per_s is not None and not _is_slow(r, usual[r.op])}
    delay_us = usual_delay_us(results)

    def is_bad(result: PairResult) -> bool:
        slow = result.gb_per_s is not None and result.pair not in quick
        return slow or bool(path_problem(result, delay_us))

    return tuple(
        PairState.SLOW if state is PairState.OK and is_bad(result) else state
        for result in results
        for state in [_state(result)]
    )


def usual_delay_us(results: Sequence[PairResult]) -> float | None:
    """The fleet's median delay of a small message; None while too few pairs tell."""
    delays = [result.path.delay_us for result in results if result.path is not None]
    return statistics.median(delays) if len(delays) >= LEAST_PAIRS else None


def path_problem(result: PairResult, delay_us: float | None) -> str:
    """What is wrong with a path that carries every bit right, "" for nothing."""
    path, (first, second) = result.path, result.pair
    if path is None:
        return ""
    rates = {
        f"{first} to {second}": path.there_gb_per_s,
        f"{second} to {first}": path.back_gb_per_s,
    }
    weak, strong = sorted(rates, key=lambda direction: rates[direction])
    if rates[weak] < ONE_WAY_SHARE * rates[strong]:
        return f"{weak} carries {rates[weak] / rates[strong]:.0%} of what {strong} does"
    if delay_us is None or path.delay_us < max(LATE_FLOOR_US, LATE_RATIO * delay_us):
        return ""
    return f"{path.delay_us:.0f} us one way, the fleet's median is {delay_us:.0f}"


def _usual(results: Sequence[PairResult], op: str) -> float | None:
    rates = [r.gb_per_s for r in results if r.op == op and r.gb_per_s is not None]
    return statistics.median(rates) if len(rates) >= LEAST_PAIRS else None


def _is_slow(result: PairResult, usual: float | None) -> bool:
    rate = result.gb_per_s
    return usual is not None and rate is not None and rate < SLOW_SHARE * usual


def _state(result: PairResult) -> PairState:
    if result.failed is None:
        return PairState.NOT_MEASURED
    if result.silent:
        return PairState.SILENT
    return PairState.WRONG if result.failed else PairState.OK


def suspects(results: Sequence[PairResult], states: Sequence[PairState]) -> tuple[str, ...]:
    """Nodes that are bad with both neighbours while each of those is well with somebody else.

    Two nodes cannot outvote each other: a single bad pair names nobody. Wrong bits and silence are
    looked at first and by themselves: a pair that is slow elsewhere does not excuse them.
    """
    hard = _odd_nodes(results, states, HARD)
    return tuple(dict.fromkeys((*hard, *_odd_nodes(results, states, BAD))))


def node_readings(results: Sequence[PairResult]) -> Mapping[str, tuple[Measurement, ...]]:
    """What the pairs say of each node, as the readings of the check `fabric.pairs`."""
    states = judge_pairs(results)
    odd = dict.fromkeys(suspects(results, states), "slow")
    for node in _odd_nodes(results, states, HARD):
        wrong = any(
            s is PairState.WRONG for r, s in zip(results, states, strict=True) if node in r.pair
        )
        odd[node] = "wrong" if wrong else "silent"
    measured = [r for r in results if r.failed is not None]
    names = dict.fromkeys(name for result in measured for name in result.pair)
    return {name: _readings(name, odd.get(name, "none"), results, states) for name in names}


def _readings(
    node: str, odd: str, results: Sequence[PairResult], states: Sequence[PairState]
) -> tuple[Measurement, ...]:
    own = [
        (next(name for name in result.pair if name != node), result, state)
        for result, state in zip(results, states, strict=True)
        if node in result.pair and state is not PairState.NOT_MEASURED
    ]
    paths = [result.path for _, result, _ in own if result.path is not None]
    values: dict[str, Value] = {
        "partners": len({partner for partner, _, _ in own}),
        "bad_partners": len({partner for partner, _, state in own if state in BAD}),
        "odd": odd,
    }
    if paths:
        values["delay_us"] = min(path.delay_us for path in paths)
        values["gb_per_s"] = max(min(p.there_gb_per_s, p.back_gb_per_s) for p in paths)
    return tuple(Measurement(f"{CHECK}.{name}", "", value) for name, value in values.items())


def _odd_nodes(
    results: Sequence[PairResult], states: Sequence[PairState], bad: Container[PairState]
) -> tuple[str, ...]:
    partners: dict[str, dict[str, bool]] = {}
    for result, state in zip(results, states, strict=True):
        if state is PairState.NOT_MEASURED:
            continue
        first, second = result.pair
        for node, other in ((first, second), (second, first)):
            seen = partners.setdefault(node, {})
            seen[other] = seen.get(other, False) or state in bad
    return tuple(node for node in partners if _is_odd(node, partners))


def _is_odd(node: str, partners: Mapping[str, Mapping[str, bool]]) -> bool:
    others = partners[node]
    return (
        len(others) > 1
        and all(others.values())
        and all(not all(partners[other].values()) for other in others)
    )
