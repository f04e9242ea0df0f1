"""Small fleets for tests."""

from dataclasses import replace

from brctl.model.simulation import SimulatedRun
from brctl.simulate.decisions import Rules
from brctl.simulate.fleet import Fleet
from brctl.simulate.fleet_file import find_fleet
from brctl.simulate.policies import POLICIES, SimulatedPolicy, StartKind
from brctl.simulate.run import Task, run_seed
from brctl.simulate.symptoms import Kind

MEANS = find_fleet("paper-means")


def of_the_job(nodes: int, per_node_day: float, start_s: float, days: float) -> Fleet:
    """A fleet whose every stop is the job's own, so that none comes while it stands."""
    times = replace(MEANS.times, requeue_s=start_s, load_remote_s=0.0, load_near_s=0.0)
    return replace(
        MEANS, nodes=nodes, per_1000_node_days=1_000 * per_node_day, days=days, times=times,
        shares={"manual": 1.0},
    )  # fmt: skip


def saving(interval_s: float, write_s: float) -> SimulatedPolicy:
    """Only saves and starts: what the formulas know."""
    none = dict.fromkeys(Kind, 0.0)
    return SimulatedPolicy(
        "saving", "saves", StartKind.REQUEUE, none, none, interval_s=interval_s, write_s=write_s
    )


def simulated(
    fleet: Fleet, policy: SimulatedPolicy | str, seed: int, rules: Rules | None = None
) -> SimulatedRun:
    """One policy on one trace."""
    chosen = POLICIES[policy] if isinstance(policy, str) else policy
    (run,) = run_seed(Task(fleet, (chosen,), (seed,), fleet.days, rules), seed)
    return run
