"""Do closed form, renewal formula and events agree, and does the paper come out again?

    python -m tests.bench.simulate [--runs 1000] [--days 2000] [--nodes 100000] [--seed 7]

First the expected shares of productive time of five published cases, by formula and by events.
Then ByteRobust's tables beside ours. Then how long a policy takes, for 1,200 nodes and for many:
CPU seconds of one process, once each shape of readings was decided. Exit 1 when a figure is off.
"""

import argparse
import sys
import time
from dataclasses import dataclass, replace
from math import sqrt
from os import cpu_count
from statistics import fmean, stdev

from brctl.simulate.formulas import best_interval_s, closed_form, exact, stops_per_s
from brctl.simulate.paper import tables
from brctl.simulate.policies import POLICIES
from brctl.simulate.run import Task, run_seed
from brctl.view.simulation.paper import paper_page
from brctl.view.text import columns
from tests.simulate.fleets import MEANS, of_the_job, saving, simulated

PARTS = 20
"""Runs that the simulated days are split into, for a standard error."""
ERRORS_ALLOWED = 3.0


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


def speed(nodes: int, seed: int) -> list[list[str]]:
    """CPU seconds of one run of 90 days, by policy and size."""
    rows = []
    for count in (MEANS.nodes, nodes):
        fleet = replace(MEANS, nodes=count)
        for policy in POLICIES.values():
            task = Task(fleet, (policy,), (seed,), 90.0)
            run_seed(task, seed)
            began = time.process_time()
            (run,) = run_seed(task, seed)
            taken = time.process_time() - began
            rows.append([policy.name, f"{count:,}", str(run.stops), f"{taken:.2f} s"])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000, help="of each row of ETTR")
    parser.add_argument("--days", type=float, default=2_000.0, help="of each case of events")
    parser.add_argument("--nodes", type=int, default=100_000, help="of the large fleet")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    found = [shares(case, options.days, options.seed) for case in CASES]
    head = ["SHARE OF PRODUCTIVE TIME", "CLOSED", "EXACT", "EVENTS", "PUBLISHED", ""]
    print(columns([head, *(row for row, _ in found)]) + "\n")
    published = tables(options.runs, options.seed, cpu_count() or 1)
    print(paper_page(published).text + "\n")
    print(columns([["90 DAYS OF", "NODES", "STOPS", "CPU"], *speed(options.nodes, options.seed)]))
    return 0 if published.holds and all(holds for _, holds in found) else 1


if __name__ == "__main__":
    sys.exit(main())
