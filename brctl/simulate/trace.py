"""Faults drawn once, before any policy runs: every policy meets the same ones.

What the job's own code and its people do comes with the hours it trains; what nodes do comes with
the hours that pass. Here stands the truth of every fault, so nothing that decides may import this.
"""

from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from brctl.simulate.fleet import US, Fleet
from brctl.simulate.symptoms import SYMPTOMS, Cause, Kind

DAY_US = 86_400 * US
OF_THE_JOB = (Cause.CODE, Cause.PERSON)


@dataclass(frozen=True, slots=True)
class DrawnFault:
    """One fault as it truly is.

    Attributes:
        number: Its place in the trace; chances of what follows from it are named by it.
        at_us: When it begins, on the clock of its kind: wall time, or hours trained.
        nodes: Slots of the job it is on; several where a switch takes them at once.
        bad_node: It comes from a node that keeps failing, and leaves with it.
    """

    number: int
    at_us: int
    symptom: str
    cause: Cause
    nodes: tuple[int, ...]
    bad_node: bool = False

    @property
    def kind(self) -> Kind:
        return SYMPTOMS[self.symptom].kind

    @property
    def culprits(self) -> tuple[int, ...]:
        """Slots whose nodes must leave before the job can go on."""
        return self.nodes if self.cause is Cause.MACHINE else ()


@dataclass(frozen=True, slots=True)
class Trace:
    """All faults of one run, by the clock they come with."""

    seed: int
    days: float
    of_nodes: tuple[DrawnFault, ...]
    of_job: tuple[DrawnFault, ...]


def draw(fleet: Fleet, seed: int, days: float) -> Trace:
    """The faults of one run: independent and evenly spread, but for bad nodes and bursts."""
    rng = Random(f"faults/{seed}")
    names, table = list(fleet.shares), list(accumulate(fleet.shares.values()))
    bad = rng.sample(range(fleet.nodes), round(fleet.bad_share * fleet.nodes))
    # The rate counts what bad nodes do too: this is what they do beyond the others.
    extra = fleet.bad_share * (fleet.bad_times - 1)
    mean_us = DAY_US / fleet.stops_per_day if fleet.stops_per_day else 0.0
    of_nodes: list[DrawnFault] = []
    of_job: list[DrawnFault] = []
    at, number = 0.0, 0
    while mean_us:
        at += rng.expovariate(1.0) * mean_us
        if at >= days * DAY_US:
            break
        number += 1
        name = names[bisect(table, rng.random() * table[-1])]
        cause = SYMPTOMS[name].cause(rng.random())
        from_bad, who, burst = rng.random(), rng.random(), rng.random()
        if cause in OF_THE_JOB:
            of_job.append(DrawnFault(number, round(at), name, cause, ()))
            continue
        is_bad = from_bad * (1 + extra) < extra
        first = bad[int(who * len(bad))] if is_bad else int(who * fleet.nodes)
        many = min(fleet.burst_nodes, fleet.nodes) if burst < fleet.burst_share else 1
        slots = tuple((first + k) % fleet.nodes for k in range(many))
        of_nodes.append(DrawnFault(number, round(at), name, cause, slots, is_bad))
    return Trace(seed, days, tuple(of_nodes), tuple(of_job))


def counted(trace: Trace) -> Mapping[str, int]:
    """How often each symptom was drawn."""
    found = dict.fromkeys(SYMPTOMS, 0)
    for fault in (*trace.of_nodes, *trace.of_job):
        found[fault.symptom] += 1
    return found
