"""Do closed form, renewal formula and events agree, and does the paper come out again?

    python -m tests.bench.simulate [--runs 1000] [--days 2000] [--nodes 100000] [--many 300]

First the expected shares of productive time of five published cases, by formula and by events.
Then ByteRobust's tables beside ours. Then how long a policy takes, for 1,200 nodes and for many:
CPU seconds of one process, once each shape of readings was decided; and the wall time of many runs
over all cores. Exit 1 when a figure is off, or a policy takes too long.
"""

import argparse
import sys
import time
from dataclasses import dataclass, replace
from math import sqrt
from os import cpu_count
from statistics import fmean, stdev

from brctl.evidence.job.expected_ettr import closed_form
from brctl.simulate.compare import choose_policies
from brctl.simulate.formulas import best_interval_s, exact, stops_per_s
from brctl.simulate.paper import tables
from brctl.simulate.policies import POLICIES, USUAL
from brctl.simulate.run import Task, run_all, run_seed
from brctl.view.simulation.paper import paper_page
from brctl.view.text import columns
from tests.simulate.fleets import MEANS, of_the_job, saving, simulated

PARTS = 20
"""Runs that the simulated days are split into, for a standard error."""
ERRORS_ALLOWED = 3.0
MOST_CPU_S = 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """A published share; `interval_s` 0 stands for Young's optimum."""

    name: str
    nodes: int
    per_node_day: float
    start_s: float
    interval_s: float
    write_s: float
    published: str


CASES = (
    Case("N 2,000, 6.5e-3, u 5 min, tau 60 min", 2_000, 6.5e-3, 300, 3_600, 0, "0.7"),
    Case("same, tau 5 min", 2_000, 6.5e-3, 300, 300, 0, "0.93"),
    Case("N 1,000, u 5 + queue 1 min, tau 30 min", 1_000, 6.5e-3, 360, 1_800, 0, "0.9"),
    Case("N 1,500, w 10 s, tau* , u 5 min", 1_500, 6.5e-3, 300, 0, 10, ">= 0.9"),
    Case("N 1,500, 1e-3, w 5 min, tau*, u 5 min", 1_500, 1e-3, 300, 0, 300, "0.9"),
)


def shares(case: Case, days: float, seed: int) -> tuple[list[str], bool]:
    """A row of the first table, and whether events agree with the formula."""
    stops = stops_per_s(case.nodes, case.per_node_day)
    interval_s = case.interval_s or best_interval_s(stops, case.write_s)
    fleet = of_the_job(case.nodes, case.per_node_day, case.start_s, days / PARTS)
    policy = saving(interval_s, case.write_s)
    found = [simulated(fleet, policy, seed + i).ettr for i in range(PARTS)]
    wanted = exact(stops, case.start_s, interval_s, case.write_s)
    error = stdev(found) / sqrt(PARTS)
    holds = abs(fmean(found) - wanted) <= ERRORS_ALLOWED * error
    row = [
        case.name, f"{closed_form(stops, case.start_s, interval_s, case.write_s):.3f}",
        f"{wanted:.3f}", f"{fmean(found):.4f} +-{error:.4f}", case.published,
        "ok" if holds else "OFF",
    ]  # fmt: skip
    return row, holds


def speed(nodes: int, seed: int) -> tuple[list[list[str]], bool]:
    """CPU seconds of one run of 90 days, by policy and size; whether the usual size is in time."""
    rows, in_time = [], True
    for count, names in ((MEANS.nodes, tuple(POLICIES)), (nodes, USUAL)):
        fleet = replace(MEANS, nodes=count)
        for policy in (POLICIES[name] for name in names):
            task = Task(fleet, (policy,), (seed,), 90.0)
            run_seed(task, seed)
            began = time.process_time()
            (run,) = run_seed(task, seed)
            taken = time.process_time() - began
            rows.append([policy.name, f"{count:,}", str(run.stops), f"{taken:.2f} s"])
            in_time = in_time and (taken <= MOST_CPU_S or count != MEANS.nodes)
    return rows, in_time


def many(runs: int, seed: int) -> str:
    """Wall seconds of many runs of all usual policies over all cores."""
    task = Task(MEANS, choose_policies(USUAL), tuple(range(seed, seed + runs)), 90.0)
    began, cores = time.perf_counter(), cpu_count() or 1
    found = list(run_all(task, cores))
    taken = time.perf_counter() - began
    return (f"{len(found)} runs of {MEANS.nodes:,} nodes x 90 days, {len(USUAL)} policies,"
            f" {cores} cores: {taken:.0f} s")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000, help="of each row of ETTR")
    parser.add_argument("--days", type=float, default=2_000.0, help="of each case of events")
    parser.add_argument("--nodes", type=int, default=100_000, help="of the large fleet")
    parser.add_argument("--many", type=int, default=300, help="runs over all cores")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    found = [shares(case, options.days, options.seed) for case in CASES]
    head = ["SHARE OF PRODUCTIVE TIME", "CLOSED", "EXACT", "EVENTS", "PUBLISHED", ""]
    print(columns([head, *(row for row, _ in found)]) + "\n")
    published = tables(options.runs, options.seed, cpu_count() or 1)
    print(paper_page(published).text + "\n")
    rows, in_time = speed(options.nodes, options.seed)
    print(columns([["90 DAYS OF", "NODES", "STOPS", "CPU"], *rows]))
    word = "reached" if in_time else "MISSED"
    print(f"at most {MOST_CPU_S:g} s a policy for {MEANS.nodes:,} nodes: {word}")
    print(many(options.many, options.seed))
    return 0 if published.holds and in_time and all(holds for _, holds in found) else 1


if __name__ == "__main__":
    sys.exit(main())
