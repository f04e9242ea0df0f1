"""One diagnosis: look, decide, keep the verdicts, tell people; for every front end the same."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.notify_runs import Say
from brctl.engine.incidents.notify_verdicts import notify_diagnosis
from brctl.engine.job.diagnose import Diagnosis, diagnose_once, keep
from brctl.engine.job.looks import keep_fresh_look
from brctl.engine.recording.recorder import Recorder
from brctl.engine.recording.ring import keep as keep_recording
from brctl.engine.sweeps.run_checks import Progress, Question, refuse_heavy_on_busy
from brctl.evidence.job.unsettled import LookAgain, Unsettled, look_again
from brctl.inventory.select import NOTHING_KNOWN, names_in
from brctl.model.errors import UnavailableError, UsageError
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.verdict import Confidence, Verdict

LONGEST_WAIT_S = 60.0
"""A person waits so long rather than type the same again (own); the usual `stall_after`."""

Wait = Callable[[JobStatus, LookAgain], Awaitable[None]]
"""Waits until a job is to be looked at again, and may say why."""

BESIDE_HINT = "say --beside-job to look all the same; `brctl dx` disturbs nothing"


@dataclass(frozen=True, slots=True)
class DiagnosisScope:
    """What a diagnosis is about: a job on its nodes, or nodes."""

    job: Job | None
    nodes: tuple[str, ...]


async def scope_of(
    controller: Controller, job: str | None, include: str | None = None, exclude: str | None = None
) -> DiagnosisScope:
    """A named job on its nodes or on those chosen; chosen nodes alone; else the only job there is.

    Raises:
        UsageError: There is no such job, or nothing says which of several.
    """
    chosen = include or exclude
    if job is not None and job not in controller.jobs:
        _refuse_nodes_as_job(controller, job)
    about = None if (chosen and job is None) or not controller.jobs else controller.job(job)
    if about is not None and not chosen:
        return DiagnosisScope(about, tuple(about.nodes))
    return DiagnosisScope(about, await select_nodes(controller, include, exclude))


def _refuse_nodes_as_job(controller: Controller, text: str) -> None:
    """`dx n2` is a slip for `dx -w n2`, and is said to be one; any other text is left alone."""
    try:
        found = names_in(controller.inventory, text, NOTHING_KNOWN)
    except (UsageError, UnavailableError):
        found = ()
    if text.startswith("@") or (found and all(n in controller.inventory.nodes for n in found)):
        raise UsageError(f"`{text}` names nodes, not a job", hint=f"brctl dx -w '{text}'")


async def diagnose(
    controller: Controller,
    scope: DiagnosisScope,
    say: Say,
    on_node: Progress | None = None,
    *,
    level: int = 1,
    heavy: tuple[str, ...] = (),
    beside_job: bool = False,
    wait: Wait | None = None,
) -> Diagnosis:
    """Look once, decide, keep the verdicts and tell what is sure.

    With `wait`, a job that may have stopped or slowed a moment ago is looked at again: a hang of a
    few seconds looks like a job that makes progress.

    Raises:
        GuardError: The level loads nodes that carry ranks, and nobody said `beside_job`.
    """
    if not beside_job:
        question = Question(level=level, job=scope.job, heavy=heavy)
        refuse_heavy_on_busy(controller, scope.nodes, question, hint=BESIDE_HINT)
    found = await look_once(controller, scope, say, on_node, level=level, heavy=heavy)
    seen = set[Unsettled]()
    while wait is not None and (again := _worth_another(found, seen)) and found.status is not None:
        await wait(found.status, again)
        found = await look_once(controller, scope, say, level=level)
    await conclude(controller, found, say)
    return found


async def look_once(
    controller: Controller,
    scope: DiagnosisScope,
    say: Say,
    on_node: Progress | None = None,
    *,
    level: int = 1,
    heavy: tuple[str, ...] = (),
) -> Diagnosis:
    """One look, recorded, so that it can be judged again; without that the verdict stands too."""
    recorder = Recorder(controller)
    found = await diagnose_once(
        recorder.controller, scope.job, scope.nodes, on_node, level=level, heavy=heavy
    )
    try:
        look = recorder.look(found, scope.job, scope.nodes, level, heavy)
        keep_recording(controller.state_dir, look, recorder)
    except OSError as exc:
        say(f"warning: this look was not recorded: {exc}")
    return found


def _worth_another(found: Diagnosis, seen: set[Unsettled]) -> LookAgain | None:
    """The look that would tell more; what gave rise to it is added to `seen`."""
    again = look_again(found.status, seen) if found.status is not None else None
    if again is None or found.sweep.level > 1 or _is_sure(found.verdicts[0]):
        return None
    seen.add(again.why)
    return again if again.in_s <= LONGEST_WAIT_S else None


def _is_sure(likeliest: Verdict) -> bool:
    named = likeliest.fault not in (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
    return named and likeliest.confidence is not Confidence.LOW


async def conclude(controller: Controller, found: Diagnosis, say: Say) -> None:
    """Keep the verdicts of a look, so that `why` and `fix` find them, and tell what is sure."""
    keep_found(controller, found)
    await notify_diagnosis(controller, found, say)


def keep_found(controller: Controller, found: Diagnosis) -> None:
    """Keep the verdicts of a look, and what it saw of the job."""
    keep(controller, found)
    if found.status is not None:
        keep_fresh_look(controller, found.status)
