"""Take back what a run did, newest first, down to the last step that cannot be undone."""

import asyncio
from collections.abc import Mapping, Sequence

from brctl.actions.contract import ActionFailed, Done
from brctl.actions.registry import ACTIONS, action_of
from brctl.engine.runs.session import Ending, RunDesk
from brctl.journal.keys import Keys
from brctl.model.errors import BrctlError, LockedError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Hook, Json, OnExpire, Safety, Step
from brctl.playbook.expressions import ExpressionError
from brctl.playbook.lanes import instance_of
from brctl.playbook.plan import KEY
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
    """Undo every step that may have changed something and can be undone, node by node."""
    record = desk.record
    if not record.rolling_back:
        desk.write(EventType.ROLLBACK_STARTED, {"because": record.failed_error})
    stuck = [why for node in reversed(record.lanes) if (why := await take_back_lane(desk, node))]
    if stuck:
        return Ending("needs_human", ExitCode.NEEDS_HUMAN, "; ".join(stuck))
    if record.denied_by:
        return Ending("waiting", ExitCode.WAITING, f"denied by {record.denied_by}")
    because = record.failed_error or record.undone_because
    failed = f"{record.failed_step}: " if record.failed_step else ""
    return Ending("rolled_back", ExitCode.ROLLED_BACK, failed + because)


async def take_back_lane(desk: RunDesk, node: str) -> str:
    """Undo one node's steps; says what stands in the way, or ""."""
    lane = desk.record.lanes[node]
    for step in reversed(_undone_with(desk, lane.failed_step)):
        name = instance_of(step.id, node)
        past = desk.record.steps[name]
        if past.state not in UNDOABLE or not past.acted:
            continue
        if step.safety is Safety.DESTRUCTIVE:
            return f"{name} cannot be undone: {lane.failed_error}".rstrip(": ")
        if step.undo is not None and not await _undo(desk, step, node):
            return f"{name} could not be undone: {past.error}"
    return ""


def _undone_with(desk: RunDesk, failed_step: str) -> Sequence[Step]:
    """What ran because of a failure stays, unless a person takes the whole run back."""
    steps = desk.playbook.steps
    if not failed_step or desk.request.undo:
        return steps
    return steps[: [step.id for step in steps].index(failed_step) + 1]


async def expire(desk: RunDesk) -> Ending:
    """Nobody said yes in time: keep the cordon and free the standbys, or take all back."""
    approval = desk.playbook.approval
    if approval is not None and approval.on_expire is OnExpire.ABORT:
        ending = await roll_back(desk)
        if ending.exit_code is ExitCode.NEEDS_HUMAN:
            return ending
        return Ending("expired", ExitCode.WAITING, "the approval expired; all was taken back")
    for node in desk.record.lanes:
        for step in reversed(desk.playbook.steps):
            name = instance_of(step.id, node)
            held = step.uses == "standby.acquire" and desk.record.steps[name].state in UNDOABLE
            if held and not await _undo(desk, step, node):
                return Ending("needs_human", ExitCode.NEEDS_HUMAN, f"{name} was not released")
    why = "the approval expired; standbys are free again, cordons stay"
    return Ending("expired", ExitCode.WAITING, why)


async def _undo(desk: RunDesk, step: Step, node: str) -> bool:
    name = instance_of(step.id, node)
    given = desk.record.steps[name].given
    desk.write(EventType.UNDO_INTENT, {"step": name, "do": given})
    try:
        async with asyncio.timeout(step.timeout_s):
            done = await _take_back(desk, step, node, given)
    except LockedError:
        raise
    except (TimeoutError, ActionFailed, BrctlError, ExpressionError) as exc:
        error = str(exc) or f"not undone within {step.timeout_s:g} s"
        desk.write(EventType.UNDO_RESULT, {"step": name, "ok": False, "error": error})
        return False
    if KEY in given:
        Keys(desk.ground.state_dir).forget(str(given[KEY]), desk.site.run)
    desk.write(
        EventType.UNDO_RESULT,
        {"step": name, "ok": True, "changed": done.changed, "say": done.say},
    )
    return True


async def _take_back(desk: RunDesk, step: Step, node: str, given: Mapping[str, Json]) -> Done:
    if isinstance(step.undo, Hook):
        arguments = expand(step.undo.arguments, desk.scope(node))
        return await ACTIONS[step.undo.uses].apply(desk.site, arguments)  # type: ignore[arg-type]  # a mapping stays one
    return await action_of(step, instance_of(step.id, node)).undo(desk.site, given)
