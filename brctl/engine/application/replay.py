"""Replay a reduced job in groups of nodes: which groups, and the search itself, recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from brctl.engine.controller.clock import now
from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.controller.wiring import open_controller
from brctl.engine.search.bisect import BisectOptions, bisect
from brctl.engine.search.recorded import OnRound, Recorded, SearchRecord, record_search
from brctl.engine.search.replay_phases import run_dual_phase
from brctl.engine.search.replay_runner import ReplayRunner, replay_command
from brctl.library.config import Settings
from brctl.localise.problem import SearchProblem
from brctl.localise.replay import DualPhase, dual_phase, span_of
from brctl.localise.strategy import Localiser
from brctl.model.jobs.job import Job
from brctl.model.localisation import Bisection


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """One replay, as a person asks for it.

    Attributes:
        job: None for the only one.
        dual: The paper's two fixed phases instead of a search.
        k: Replicas in a horizontal group of those; None for the fewest that give one answer.
    """

    job: str | None = None
    dual: bool = False
    k: int | None = None
    reps: int = 1
    budget_s: float = 7200.0
    round_deadline_s: float = 1200.0


@dataclass(frozen=True, slots=True)
class PlannedReplay:
    """The groups that would be replayed: both phases, or the first round of a search."""

    job: Job
    span: int
    phases: DualPhase | None
    first_round: tuple[tuple[str, ...], ...] = ()


async def plan_replay(settings: Settings, request: ReplayRequest) -> PlannedReplay:
    """The groups, without running anything."""
    async with open_controller(settings) as controller:
        job = controller.job(request.job)
    if request.dual:
        return PlannedReplay(job, span_of(job), _phases(job, request))
    first = Localiser(_problem(job, reps=1)).plan()
    groups = first.groups if first else ()
    named = tuple(tuple(job.nodes[i] for i in group) for group in groups)
    return PlannedReplay(job, span_of(job), None, named)


async def replay(
    settings: Settings,
    request: ReplayRequest,
    also: Sequence[TextIO] = (),
    on_round: OnRound | None = None,
) -> Recorded:
    """Replay in groups until the machine is found.

    Raises:
        UsageError: The job does not say how to replay it, or cannot be cut into such groups.
    """
    async with open_controller(settings) as controller:
        refuse_readonly(settings, "a replay")
        job = controller.job(request.job)
        replay_command(job)
        runner = ReplayRunner(controller.transport, controller.inventory.nodes, job)
        options = BisectOptions("replay", 0, request.budget_s, request.round_deadline_s)

        async def drive(tell: OnRound) -> Bisection:
            if not request.dual:
                return await bisect(_problem(job, request.reps), options, runner, now, tell)
            phases = _phases(job, request)
            return await run_dual_phase(job.nodes, phases, options, runner, now, tell)

        record = SearchRecord(controller.state_dir, also)
        return await record_search(job.nodes, runner.name, drive, record, on_round)


def _phases(job: Job, request: ReplayRequest) -> DualPhase:
    return dual_phase(len(job.nodes), span_of(job), request.k)


def _problem(job: Job, reps: int) -> SearchProblem:
    return SearchProblem(job.nodes, reps=reps, span=max(2, span_of(job)))
