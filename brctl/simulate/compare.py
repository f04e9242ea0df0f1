"""What a simulation is asked for, and its answer: policies side by side, or one parameter swept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from brctl.model.errors import UsageError, did_you_mean
from brctl.model.simulation import ParameterSweep, PolicyComparison, SimulatedRun, SweepPoint
from brctl.simulate.decisions import Rules
from brctl.simulate.fleet import Fleet
from brctl.simulate.policies import POLICIES, SimulatedPolicy
from brctl.simulate.recorded import RecordedFaults
from brctl.simulate.run import Task, run_all
from brctl.simulate.score import score
from brctl.simulate.sweep import changed

FAULTS_LIMIT = 2_000_000
"""Ten times the stops after which a run counts as one without end; each worker holds its faults."""

Done = Callable[[object], None]


@dataclass(frozen=True, slots=True)
class Request:
    """Which runs of which policies, on drawn or recorded faults, and on how many cores.

    Raises:
        UsageError: A run would have more faults than memory has room for, or a record more nodes.
    """

    fleet: Fleet
    policies: tuple[SimulatedPolicy, ...]
    seed: int
    runs: int
    workers: int = 1
    rules: Rules | None = None
    recorded: RecordedFaults | None = None

    def __post_init__(self) -> None:
        fleet = self.fleet
        if self.recorded is not None:
            self.recorded.refuse_smaller(fleet)
            return
        faults = fleet.stops_per_day * fleet.days
        if faults > FAULTS_LIMIT:
            raise UsageError(
                f"{fleet.name}: {fleet.nodes} nodes with {fleet.per_1000_node_days:g} failures per"
                f" 1,000 node-days have {faults:,.0f} in {fleet.days:g} days; at most"
                f" {FAULTS_LIMIT:,} are simulated",
                hint="fewer --days, or look at the unit of per_1000_node_days",
            )

    @property
    def titles(self) -> dict[str, str]:
        """What each policy does, by its name."""
        return {policy.name: policy.title for policy in self.policies}

    def seeds(self, part: int = 1, parts: int = 1) -> tuple[int, ...]:
        """The seeds of one part of all runs."""
        return tuple(range(self.seed, self.seed + self.runs))[part - 1 :: parts]


def choose_policies(names: Iterable[str]) -> tuple[SimulatedPolicy, ...]:
    """The rows of these names, in their order.

    Raises:
        UsageError: A name is none of them, or there is none.
    """
    wanted = tuple(dict.fromkeys(name for text in names for name in text.split(",") if name))
    for name in wanted:
        if name not in POLICIES:
            raise UsageError(f"--policy {name}: {did_you_mean(name, POLICIES)}")
    if not wanted:
        raise UsageError("--policy names none", hint=f"one of {', '.join(POLICIES)}")
    return tuple(POLICIES[name] for name in wanted)


def simulated(request: Request, seeds: Sequence[int], done: Done) -> list[SimulatedRun]:
    """The runs of these seeds; an interrupt ends it with those that are finished."""
    runs: list[SimulatedRun] = []
    with suppress(KeyboardInterrupt):
        for each in _runs(request, seeds, done):
            runs += each
    return runs


def _runs(request: Request, seeds: Sequence[int], done: Done) -> Iterator[list[SimulatedRun]]:
    """The runs of one seed after the other, never some policies of it."""
    task = Task(
        request.fleet, request.policies, tuple(seeds), request.fleet.days, request.rules,
        request.recorded,
    )  # fmt: skip
    for each in run_all(task, request.workers):
        yield each
        done(each)


def compared(request: Request, runs: Sequence[SimulatedRun], wanted: int) -> PolicyComparison:
    """Runs as scores, with what is missing said aloud.

    Raises:
        UsageError: Not one run was finished.
    """
    if not runs:
        raise UsageError("interrupted before one run was finished", hint="--runs 1, or --days 30")
    had = len({run.seed for run in runs})
    missing = [f"{wanted - had} of {wanted} runs were not made"] if had < wanted else []
    missing += [run.unfinished for run in runs if run.unfinished]
    whole = [run for run in runs if not run.unfinished]
    scores = score(whole, request.titles)
    return PolicyComparison(
        request.fleet.facts(), request.seed, scores, tuple(dict.fromkeys(missing))
    )


def swept(request: Request, name: str, values: Sequence[float], done: Done) -> ParameterSweep:
    """The same runs at every value; an interrupt ends it with the values that are finished.

    Raises:
        UsageError: A value leaves no run to be finished, or not one value was finished, or what is
            swept was recorded.
    """
    if name == "rate" and request.recorded is not None:
        raise UsageError("--sweep rate: a recorded trace has its own rate", hint="without --trace")
    asked = [(value, _with(request, name, value)) for value in values]
    points: list[SweepPoint] = []
    with suppress(KeyboardInterrupt):
        for value, at in asked:
            runs = [run for each in _runs(at, at.seeds(), done) for run in each]
            found = compared(at, runs, at.runs)
            if found.unfinished:
                raise UsageError(f"--sweep {name}={value:g}: {found.unfinished[0]}")
            points.append(SweepPoint(value, found.scores))
    if not points:
        raise UsageError("interrupted before one value was finished", hint="--runs 1")
    made, wanted = len(points), len(values)
    missing = (f"{wanted - made} of {wanted} values were not made",) if made < wanted else ()
    return ParameterSweep(request.fleet.facts(), request.seed, name, tuple(points), missing)


def _with(request: Request, name: str, value: float) -> Request:
    fleet, policies = changed(request.fleet, request.policies, name, value)
    return replace(request, fleet=fleet, policies=policies)
