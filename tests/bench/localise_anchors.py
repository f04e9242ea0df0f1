"""The published methods, written from their descriptions: each names nodes after its rounds."""

import math
import random
from collections.abc import Callable

from tests.bench.localise_fleet import Cause, LocalisedFleet

Answer = frozenset[Cause]


def _nodes(members: set[int]) -> Answer:
    return frozenset(("node", (v,)) for v in members)


def bisection(fleet: LocalisedFleet, seed: int) -> Answer:
    """Halve failing sets, all halves of a level in one round; confirm with a known-good node."""
    del seed
    everyone = list(range(fleet.count))
    failing, found = [everyone], set()
    good: list[int] = []
    while failing:
        halves = [part for s in failing for part in (s[: len(s) // 2], s[len(s) // 2 :])]
        spare = [v for v in good if all(v not in h for h in halves)]
        groups, owner = [], []
        for half in halves:
            if len(half) >= 2:
                groups.append(half)
                owner.append(half)
            elif spare:
                groups.append([half[0], spare.pop()])
                owner.append(half)
        if not groups:
            break
        failing = []
        for half, failed in zip(owner, fleet.fails(groups), strict=True):
            if not failed:
                good += half
            elif len(half) == 1:
                found |= set(half)
            else:
                failing.append(half)
    return _nodes(found)


def dlrover(fleet: LocalisedFleet, seed: int) -> Answer:
    """Adjacent pairs; then failed ones with passing ones; faulty is what failed both times."""
    del seed
    nodes = list(range(fleet.count))
    pairs = [nodes[i : i + 2] for i in range(0, len(nodes) - 1, 2)]
    if len(nodes) % 2:
        pairs[-1] = [*pairs[-1], nodes[-1]]
    first = {v for g, f in zip(pairs, fleet.fails(pairs), strict=True) if f for v in g}
    if not first or fleet.count <= 3:
        return frozenset()
    ranked = sorted(nodes, key=lambda v: (v in first, v))
    again = [[ranked[i], ranked[-1 - i]] for i in range(len(ranked) // 2)]
    if len(ranked) % 2:
        again[-1].append(ranked[len(ranked) // 2])
    second = {v for g, f in zip(again, fleet.fails(again), strict=True) if f for v in g}
    return _nodes(first & second)


def dual_phase(fleet: LocalisedFleet, seed: int, width: int | None = None) -> Answer:
    """Horizontal groups of consecutive nodes, vertical ones by stride; suspects are in both."""
    del seed
    count = fleet.count
    m = width or max(d for d in range(1, math.isqrt(count) + 1) if count % d == 0)
    m = max(m, 2)
    n = count // m
    rows = [list(range(a * m, count if a == n - 1 else (a + 1) * m)) for a in range(n)]
    columns = [list(range(b, count, n)) for b in range(n)]
    bad_rows = [set(g) for g, f in zip(rows, fleet.fails(rows), strict=True) if f]
    bad_columns = [set(g) for g, f in zip(columns, fleet.fails(columns), strict=True) if f]
    return _nodes({v for r in bad_rows for c in bad_columns for v in r & c})


def sqrt_screen(fleet: LocalisedFleet, seed: int) -> Answer:
    """Screen in about sqrt(N) groups, split failing ones to two, confirm with healthy nodes."""
    del seed
    size = max(2, math.ceil(fleet.count / math.ceil(math.sqrt(fleet.count))))
    groups = [list(range(i, min(i + size, fleet.count))) for i in range(0, fleet.count, size)]
    if len(groups[-1]) < 2:
        last = groups.pop()
        groups[-1] += last
    results = fleet.fails(groups)
    good = [v for g, f in zip(groups, results, strict=True) if not f for v in g]
    failing = [g for g, f in zip(groups, results, strict=True) if f]
    healthy = [g[0] for g, f in zip(groups, results, strict=True) if not f]
    if len(healthy) >= 2:
        fleet.fails([healthy])
    suspects: list[int] = []
    while failing:
        suspects += [v for g in failing if len(g) <= 3 for v in g]
        halves = [h for g in failing if len(g) > 3 for h in (g[: len(g) // 2], g[len(g) // 2 :])]
        outcome = fleet.fails(halves) if halves else []
        good += [v for g, f in zip(halves, outcome, strict=True) if not f for v in g]
        failing = [g for g, f in zip(halves, outcome, strict=True) if f]
    if not suspects or not good:
        return frozenset()
    tests = [[s, g] for s, g in zip(suspects, good, strict=False)]
    outcome = fleet.fails(tests)
    return _nodes({g[0] for g, f in zip(tests, outcome, strict=True) if f})


def random_pairings(fleet: LocalisedFleet, seed: int) -> Answer:
    """Fifteen random pairings; bad is a node that fails half of its pairs or more."""
    rng = random.Random(seed)
    failed = [0] * fleet.count
    played = [0] * fleet.count
    for _ in range(15):
        order = rng.sample(range(fleet.count), fleet.count)
        half = fleet.count // 2
        pairs = [list(pair) for pair in zip(order[:half], order[half : 2 * half], strict=True)]
        for pair, bad in zip(pairs, fleet.fails(pairs), strict=True):
            for v in pair:
                played[v] += 1
                failed[v] += bad
    return _nodes({v for v in range(fleet.count) if played[v] and failed[v] / played[v] >= 0.5})


ANCHORS: dict[str, Callable[[LocalisedFleet, int], Answer]] = {
    "bisection": bisection,
    "DLRover pairs": dlrover,
    "dual-phase": dual_phase,
    "sqrt-N screen": sqrt_screen,
    "15 pairings": random_pairings,
}
