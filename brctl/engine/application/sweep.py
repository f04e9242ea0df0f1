"""One sweep: alone in its context, remembered, and told; for cron, a person and the terminal."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from brctl.engine.controller.name_cache import write_names
from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.cycle import record_sweep, sweep_lock
from brctl.engine.sweeps.run_checks import Progress, Question, refuse_heavy_on_busy, sweep_nodes
from brctl.library.config import Settings
from brctl.model.errors import BrctlError
from brctl.model.sweeps.changes import Changes
from brctl.model.sweeps.sweep import Sweep

if TYPE_CHECKING:
    from brctl.engine.application.job_looks import JobNews
    from brctl.engine.incidents.notify_runs import Say

Opener = Callable[[], AbstractAsyncContextManager[Controller]]
"""Opens the context, or lends one that is open."""


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """Which nodes to ask what, and how.

    Attributes:
        include: As with -w; None for all nodes.
        job: Its ranks are asked about too; None for none.
        lock: What to do while another sweep of this context runs: skip, wait or fail.
        wait_s: Pause before the first question, to spread hosts.
        regular: It is the sweep of cron: jobs are looked at, approvals that nobody gave expire,
            cordons that are over are lifted, and people are told.
        beside_job: Heavy checks may run on nodes that carry ranks.
        counts_cordons: The scheduler is asked how many nodes are out of service, for metrics.
    """

    question: Question
    include: str | None = None
    exclude: str | None = None
    job: str | None = None
    lock: str = "wait"
    wait_s: float = 0.0
    regular: bool = False
    beside_job: bool = False
    counts_cordons: bool = False


@dataclass(frozen=True, slots=True)
class SweepDone:
    """A sweep, what changed since the ones before, and the context it was made in.

    Attributes:
        expired: Runs whose approval nobody gave in time.
        jobs: What cron saw of the jobs on these nodes.
        cordoned: Nodes out of service; None when nobody asked, or the scheduler did not say.
    """

    controller: Controller
    sweep: Sweep
    changes: Changes
    expired: tuple[str, ...] = ()
    jobs: "tuple[JobNews, ...]" = ()
    cordoned: int | None = None


async def sweep(
    settings: Settings,
    open_context: Opener,
    request: SweepRequest,
    say: "Say",
    on_node: Callable[[int], Progress] | None = None,
) -> SweepDone | None:
    """Sweep once; None when another sweep runs and the request says skip.

    `on_node` is given how many nodes are asked; what it returns is told of each that answered.

    Raises:
        LockedError: Another sweep runs and the request says fail.
        GuardError: Heavy checks meet nodes with ranks on them.
    """
    with sweep_lock(settings.state_dir, settings.context, request.lock) as acquired:
        if not acquired:
            return None
        await asyncio.sleep(request.wait_s)
        async with open_context() as controller:
            return await _sweep(controller, request, say, on_node)


async def _sweep(
    controller: Controller,
    request: SweepRequest,
    say: "Say",
    on_node: Callable[[int], Progress] | None,
) -> SweepDone:
    names = await select_nodes(controller, request.include, request.exclude)
    about = controller.job(request.job) if request.job is not None else None
    question = replace(request.question, job=about)
    if not request.beside_job:
        hint = "leave them out with -x, or say --beside-job"
        refuse_heavy_on_busy(controller, names, question, hint=hint)
    found = await sweep_nodes(controller, names, question, on_node and on_node(len(names)))
    reminder = controller.settings.sweep.reminder
    changes = record_sweep(controller, found, reminder, regular=request.regular)
    write_names(controller)
    expired = await _let_expire(controller) if request.regular else ()
    if request.regular and controller.settings.notify.sinks:
        # Deciding brings the whole verdict along: half of a sweep's start-up.
        from brctl.engine.incidents.notify_verdicts import notify_sweep

        await notify_sweep(controller, found, changes, say)
    if request.regular and not controller.settings.readonly:
        from brctl.engine.application.timed_cordons import lift_ended

        await lift_ended(controller, found, say)
    jobs = await _look_at_jobs(controller, names, say) if request.regular else ()
    cordoned = await _count_cordoned(controller, say) if request.counts_cordons else None
    return SweepDone(controller, found, changes, expired, jobs, cordoned)


async def _count_cordoned(controller: Controller, say: "Say") -> int | None:
    """Nodes of the inventory that are out of service; None where the scheduler does not say."""
    try:
        return sum(
            node in controller.inventory.nodes for node in await controller.backend.cordons()
        )
    except BrctlError as exc:
        say(f"warning: cordons cannot be counted: {exc}")
        return None


async def _look_at_jobs(
    controller: Controller, names: Sequence[str], say: "Say"
) -> "tuple[JobNews, ...]":
    if not controller.jobs:
        return ()
    from brctl.engine.application.job_looks import look_at_jobs

    return await look_at_jobs(controller, names, say)


async def _let_expire(controller: Controller) -> tuple[str, ...]:
    """The process that waits for an answer may be gone after a reboot; cron is always there."""
    if controller.settings.readonly:
        return ()
    from brctl.engine.runs.remediate import expire_overdue

    return tuple(await expire_overdue(controller.state_dir, controller.now()))
