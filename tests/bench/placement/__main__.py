"""Bench of placement: whose groups stand whole, on the same free nodes and the same losses.

Run with `python -m tests.bench.placement [--clusters N]`; exit 1 when a goal is missed. The goals:
the best other policy splits more by Arnold's "1.2x on average" (arXiv 2509.15940), and ours stands
within 1 % of what no solver can go below.
"""

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from brctl.playbook.placement.assign import Free, Rows, best_fit, place, whole_rows_first
from brctl.playbook.placement.domains import domains_of
from brctl.playbook.placement.spread import layout_of, spreads
from brctl.playbook.placement.standbys import LostNodes, ReadyNode, choose
from brctl.view.text import columns
from tests.bench.placement.clusters import (
    ALPHA,
    DRAWS,
    SET_UPS,
    SetUp,
    clusters,
    job_of,
    no_better,
    row_and_column_spread,
    weighted,
)
from tests.bench.placement.policies import PEERS, brctl, slurm_blocks
from tests.bench.placement.solver import LIMIT_S, installed, objective, solved

SEED = 20
GOALS = {"i": 1.18, "ii": 1.47, "iii": 1.18}
FROM_BOUND = 0.01
LARGE = SET_UPS[-1]
SOLVED = 12
"""Clusters of each set-up that HiGHS is asked about: some take it all of its time."""


def main() -> None:
    """Print every table and leave with 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, default=200, help="of each set-up")
    count = parser.parse_args().clusters
    reached = [_policies(of, count) for of in SET_UPS]
    reached += [_beside_solver(of, min(count, SOLVED)) for of in SET_UPS] if installed() else []
    if not installed():
        print("\nHiGHS was not asked: SciPy is not installed here")
    _draws(count)
    _slack(count)
    reached.append(_losses(count))
    sys.exit(0 if all(reached) else 1)


def _policies(of: SetUp, count: int) -> bool:
    """Every policy on the same clusters; whether the goals of this set-up are reached."""
    drawn, rng = list(clusters(of, count, SEED)), random.Random(SEED)
    every = {**PEERS, "brctl": brctl}
    found = {
        name: [policy(free, of.rows, of.length, rng) for free in drawn]
        for name, policy in every.items()
    }
    bound = [no_better(free, of) for free in drawn]
    best = [min(weighted(found[name][i]) for name in PEERS) for i in range(count)]
    ours = [weighted(rows) for rows in found["brctl"]]
    ratio = mean(peer / own for peer, own in zip(best, ours, strict=True))
    apart = max(0.0, mean(ours) / mean(bound) - 1)  # rounding may end below
    print(f"\nset-up ({of.name}): {of.needs} of {of.nodes} nodes in {of.minipods} minipods,"
          f" {mean(sum(f.values()) for f in drawn):.0f} free, {count} clusters")  # fmt: skip
    rows = [[name, *_spread_cells(placed), f"{mean(map(weighted, placed)):.2f}"]
            for name, placed in found.items()]  # fmt: skip
    rows.append(["no solver can go below", "", "", f"{mean(bound):.2f}"])
    rows.append(_segments(of, drawn, rng))
    print(columns([["POLICY", "PP MAX", "DP MAX", f"WEIGHTED {ALPHA}"], *rows]))
    reached = round(ratio, 2) >= GOALS[of.name] and apart <= FROM_BOUND
    print(f"best peer / brctl: mean {ratio:.2f} (goal {GOALS[of.name]}); brctl is"
          f" {apart:.2%} above the bound (goal {FROM_BOUND:.0%}): {_word(reached)}")  # fmt: skip
    return reached


def _segments(of: SetUp, drawn: Sequence[Free], rng: random.Random) -> list[str]:
    """Slurm told the length of a row: as whole as ours, or no start; not among the others."""
    placed = [rows for free in drawn if (rows := slurm_blocks(free, of.rows, of.length, rng))]
    name = f"Slurm topology/block --segment (refuses {len(drawn) - len(placed)})"
    if not placed:
        return [name, "-", "-", "-"]
    return [name, *_spread_cells(placed), f"{mean(map(weighted, placed)):.2f}"]


def _beside_solver(of: SetUp, count: int) -> bool:
    """Ours beside HiGHS on the same clusters; whether it is within the goal."""
    drawn = list(clusters(of, count, SEED))
    best = [(free, *found) for free in drawn if (found := solved(free, of)) is not None]
    ours = mean(objective(place(free, of.rows, of.length)) for free, _, _ in best)
    apart = ours / mean(least for _, least, _ in best) - 1
    reached = apart <= FROM_BOUND
    print(f"\nset-up ({of.name}): brctl's objective is {apart:+.2%} beside HiGHS's (goal"
          f" {FROM_BOUND:.0%}: {_word(reached)}); HiGHS had {LIMIT_S:g} s a cluster and proved"
          f" {sum(proved for _, _, proved in best)} of {len(drawn)}")  # fmt: skip
    return reached


def _draws(count: int) -> None:
    """The ratio to the best peer where free nodes are drawn in other ways: it belongs to the draw.

    Below 1 a peer is better by the weighted sum, which counts the widest group and not how many
    are split: without slack it splits all rows for narrower columns.
    """
    rows = []
    for name, draw in DRAWS.items():
        found = [_ratios(of, list(draw(of, count, SEED))) for of in SET_UPS]
        rows.append([name, *(f"{mean(ratios):.2f}" for ratios in found)])
    print("\nbest peer / brctl by how free nodes are drawn; goals hold for the first")
    print(columns([["FREE NODES", *(f"({of.name})" for of in SET_UPS)], *rows]))


def _ratios(of: SetUp, drawn: Sequence[Free]) -> list[float]:
    rng = random.Random(SEED)
    return [
        min(weighted(policy(free, of.rows, of.length, rng)) for policy in PEERS.values())
        / weighted(place(free, of.rows, of.length))
        for free in drawn
    ]


def _spread_cells(placed: Sequence[Rows]) -> list[str]:
    pairs = [row_and_column_spread(rows) for rows in placed]
    return [f"{mean(pair[axis] for pair in pairs):.2f}" for axis in (0, 1)]


def _slack(count: int) -> None:
    """Why both ways are tried: without slack best-fit splits less, with 20 % whole rows fit."""
    ways: Mapping[str, Callable[[Free, int, int], Rows]] = {
        "whole rows first": whole_rows_first,
        "best-fit": best_fit,
        "the better of both": place,
    }
    shares = (0.0, 0.05, 0.1, 0.2, 0.3)
    table = [
        [name, *(f"{_mean_row_spread(way, count, share):.2f}" for share in shares)]
        for name, way in ways.items()
    ]
    print(f"\nPP max by free nodes above need, set-up ({LARGE.name})")
    print(columns([["", *(f"{share:.0%}" for share in shares)], *table]))


def _mean_row_spread(way: Callable[[Free, int, int], Rows], count: int, share: float) -> float:
    drawn = clusters(LARGE, min(count, 30), SEED, share)
    return mean(row_and_column_spread(way(f, LARGE.rows, LARGE.length))[0] for f in drawn)


@dataclass(frozen=True)
class PoolCase:
    """A pool beside a job, and how many nodes are lost at once."""

    lost: int
    pool: int
    where: str
    chosen: str


CASES = (
    PoolCase(1, 4, "one minipod", "any"),
    PoolCase(1, 4, "spread", "first"),
    PoolCase(1, 4, "spread", "by place"),
    PoolCase(4, 11, "one minipod", "any"),
    PoolCase(4, 11, "spread", "first"),
    PoolCase(4, 11, "spread", "by place"),
    PoolCase(8, 11, "spread", "first"),
    PoolCase(8, 11, "spread", "by place"),
    PoolCase(8, 11, "3 spread and a block of 8", "by place"),
)
"""Eight at once are one pipeline group, evicted whole (ByteRobust)."""


def _losses(count: int) -> bool:
    """Which standby takes the place; whether choosing by place splits the fewest groups."""
    drawn = list(clusters(LARGE, count, SEED))
    found = {case: [_after(case, free, n) for n, free in enumerate(drawn)] for case in CASES}
    rows = [[str(c.lost), str(c.pool), c.where, c.chosen,
             f"{mean(w for w, _ in found[c]):.2f}", f"{mean(s for _, s in found[c]):.2f}"]
            for c in CASES]  # fmt: skip
    print(f"\nstandbys of a job placed by brctl, {count} runs")
    print(columns([["LOST", "POOL", "STANDS", "CHOSEN", "PP MAX", "ROWS SPLIT"], *rows]))
    split = {case: mean(s for _, s in found[case]) for case in CASES}
    reached = all(
        split[case] <= split[other]
        for case in CASES if case.chosen == "by place"
        for other in CASES if other.lost == case.lost and other.chosen != "by place"
    )  # fmt: skip
    print(f"choosing by place splits the fewest groups: {_word(reached)}")
    return reached


def _after(case: PoolCase, free: Free, seed: int) -> tuple[int, int]:
    """The widest pipeline group, and groups split, after the losses were replaced."""
    rng = random.Random(seed)
    job, where = job_of(LARGE, place(free, LARGE.rows, LARGE.length))
    pool = _pool(case, sorted(set(where.values()), key=list(where.values()).count), rng)
    lost = _lost(case, job.nodes, rng)
    everywhere = {**where, **pool}
    labels = {node: {"spine": domain} for node, domain in everywhere.items()}
    if case.chosen == "by place":
        loss = LostNodes(LAYOUT, job.nodes, lost, domains_of(labels, list(labels)), 0.0)
        taken = choose(loss, [ReadyNode(node, 0.0) for node in pool]).standby_of
    else:
        taken = dict(zip(lost, pool, strict=False))
    after = spreads(LAYOUT, [everywhere[taken.get(node, node)] for node in job.nodes])[0]
    return after.widest, after.split


def _pool(case: PoolCase, minipods: list[str], rng: random.Random) -> dict[str, str]:
    names = [f"s{i:02d}" for i in range(case.pool)]
    home = rng.choice(minipods)
    block = {"one minipod": case.pool, "spread": 0}.get(case.where, LARGE.length)
    rng.shuffle(minipods)
    apart = [minipods[i % len(minipods)] for i in range(case.pool - block)]
    return dict(zip(names, [*apart, *[home] * block], strict=True))


def _lost(case: PoolCase, nodes: Sequence[str], rng: random.Random) -> tuple[str, ...]:
    if case.lost < LARGE.length:
        return tuple(rng.sample(nodes, case.lost))
    first = rng.randrange(LARGE.rows) * LARGE.length
    return tuple(nodes[first : first + LARGE.length])


def _word(reached: bool) -> str:
    return "reached" if reached else "MISSED"


LAYOUT = layout_of(job_of(LARGE, (("m",) * LARGE.length,) * LARGE.rows)[0])

if __name__ == "__main__":
    main()
