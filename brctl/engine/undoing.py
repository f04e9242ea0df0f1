"""Take back what a run did, newest first, down to the last step that cannot be undone."""

import asyncio
from collections.abc import Mapping

from brctl.actions.base import ACTIONS
from brctl.actions.contract import ActionFailed, Done
from brctl.engine.run_desk import Ending, RunDesk
from brctl.model.errors import BrctlError, LockedError
from brctl.model.event import EventType
from brctl.model.exit_codes import ExitCode
from brctl.model.playbook import Hook, Json, OnExpire, Safety, Step
from brctl.playbook.steps import StepState
from brctl.playbook.templates import expand

UNDOABLE = (
    StepState.DONE,
    StepState.FAILED,
    StepState.UNCERTAIN,
    StepState.UNDOING,
    StepState.UNDO_FAILED,
)


async def roll_back(desk: RunDesk) -> Ending:
    """Undo every step that may have changed something and can be undone."""
    record = desk.record
    if not record.rolling_back:
        desk.write(EventType.ROLLBACK_STARTED, {"because": record.failed_error})
    for step in reversed(desk.playbook.steps):
        past = record.steps[step.id]
        if past.state not in UNDOABLE:
            continue
        if step.safety is Safety.DESTRUCTIVE:
            why = f"{step.id} cannot be undone: {record.failed_error}".rstrip(": ")
            return Ending("needs_human", ExitCode.NEEDS_HUMAN, why)
        if step.undo is not None and not await _undo(desk, step):
            why = f"{step.id} could not be undone: {past.error}"
            return Ending("needs_human", ExitCode.NEEDS_HUMAN, why)
    if record.denied_by:
        return Ending("waiting", ExitCode.WAITING, f"denied by {record.denied_by}")
    because = record.failed_error or f"asked for by {desk.request.by}"
    failed = f"{record.failed_step}: " if record.failed_step else ""
    return Ending("rolled_back", ExitCode.ROLLED_BACK, failed + because)


async def expire(desk: RunDesk) -> Ending:
    """Nobody said yes in time: keep the cordon and free the standbys, or take all back."""
    approval = desk.playbook.approval
    if approval is not None and approval.on_expire is OnExpire.ABORT:
        ending = await roll_back(desk)
        if ending.exit_code is ExitCode.NEEDS_HUMAN:
            return ending
        return Ending("expired", ExitCode.WAITING, "the approval expired; all was taken back")
    for step in reversed(desk.playbook.steps):
        held = step.uses == "standby.acquire" and desk.record.steps[step.id].state in UNDOABLE
        if held and not await _undo(desk, step):
            return Ending("needs_human", ExitCode.NEEDS_HUMAN, f"{step.id} was not released")
    why = "the approval expired; standbys are free again, cordons stay"
    return Ending("expired", ExitCode.WAITING, why)


async def _undo(desk: RunDesk, step: Step) -> bool:
    given = desk.record.steps[step.id].given
    desk.write(EventType.UNDO_INTENT, {"step": step.id, "do": given})
    try:
        async with asyncio.timeout(step.timeout_s):
            done = await _take_back(desk, step, given)
    except LockedError:
        raise
    except (TimeoutError, ActionFailed, BrctlError) as exc:
        error = str(exc) or f"not undone within {step.timeout_s:g} s"
        desk.write(EventType.UNDO_RESULT, {"step": step.id, "ok": False, "error": error})
        return False
    desk.write(
        EventType.UNDO_RESULT,
        {"step": step.id, "ok": True, "changed": done.changed, "say": done.say},
    )
    return True


async def _take_back(desk: RunDesk, step: Step, given: Mapping[str, Json]) -> Done:
    if isinstance(step.undo, Hook):
        arguments = expand(step.undo.arguments, desk.scope())
        return await ACTIONS[step.undo.uses].apply(desk.site, arguments)  # type: ignore[arg-type]  # a mapping stays one
    return await ACTIONS[step.uses].undo(desk.site, given)
