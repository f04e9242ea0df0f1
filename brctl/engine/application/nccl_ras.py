"""Ask NCCL of one job, as a person wishes it: after its steps and its stacks were read."""

from collections.abc import Callable
from dataclasses import dataclass

from brctl.engine.controller.audit import record
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.job.looks import ask_job, look_before
from brctl.engine.job.stack_store import new_folder
from brctl.engine.job.stacks import capture_rounds
from brctl.engine.live_queries.ras import ask_ras, facts_of, keep_raw
from brctl.library.config import Settings
from brctl.model.errors import GuardError, UnavailableError
from brctl.model.jobs.ras import RasAnalysis
from brctl.model.nodeset import fold


@dataclass(frozen=True, slots=True)
class RasRequest:
    """Which job, and what the person who asks takes upon them.

    Attributes:
        running: Ask although it takes steps.
        old_too: Ask a release that is known to crash of it.
    """

    job: str | None
    running: bool = False
    old_too: bool = False


async def ask_nccl(
    settings: Settings, request: RasRequest, at_work: Callable[[str], None]
) -> RasAnalysis:
    """What NCCL of one job answers; see `ask_nccl_of`."""
    async with open_controller(settings) as controller:
        return await ask_nccl_of(controller, request, at_work)


async def ask_nccl_of(
    controller: Controller, request: RasRequest, at_work: Callable[[str], None]
) -> RasAnalysis:
    """What NCCL answers, asked after steps and stacks were read.

    Raises:
        GuardError: The job takes steps.
        UnavailableError: It was not asked, or did not answer.
    """
    job = controller.job(request.job)
    status = await ask_job(controller, job, look_before(controller, job))
    if not status.stalled and not request.running:
        doing = "takes steps" if status.stalled is False else "may take steps: nobody can tell"
        raise GuardError(
            f"job {job.name} {doing}; the question runs inside of it and is not for sound jobs",
            hint="`--running` asks all the same",
        )
    at_work(f"stacks of {job.world_size} ranks")
    folder = new_folder(controller.state_dir, job.name, controller.now())
    captured = await capture_rounds(controller, job, folder, times=1, every_s=0.0)
    at_work("asking NCCL; two answers are 15 s apart")
    record(
        controller.settings,
        {"action": f"nccl ras {job.name}", "nodes": fold(job.nodes), "why": ""},
    )
    old_too = request.old_too or controller.settings.nccl_ras == "old-too"
    found = await ask_ras(controller, status, facts_of(captured), old_too=old_too)
    keep_raw(folder, found)
    if found.analysis is None:
        raise UnavailableError(f"NCCL of job {job.name} gave no answer: {found.why}")
    return found.analysis
