"""Take back what a run did, newest first, down to the last step that cannot be undone."""

import asyncio
from collections.abc import Mapping, Sequence

from brctl.actions.contract import ActionFailed, ActionResult
from brctl.actions.registry import ACTIONS, action_of
from brctl.engine.runs.session import Ending, RunSession
from brctl.journal.keys import Keys
from brctl.model.errors import BrctlError, LockedError
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Hook, Json, OnExpire, Safety, Step
from brctl.model.runs.result import RunState
from brctl.playbook.expressions import ExpressionError
from brctl.playbook.node_runs import instance_of
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


async def roll_back(session: RunSession) -> Ending:
    """Undo every step that may have changed something and can be undone, node by node."""
    record = session.record
    if not record.rolling_back:
        session.write(EventType.ROLLBACK_STARTED, {"because": record.failed_error})
    _give_up_looks(session)
    stuck = [
        why for node in reversed(record.node_runs) if (why := await take_back_node(session, node))
    ]
    if stuck:
        return Ending(RunState.NEEDS_HUMAN, "; ".join(stuck))
    if record.denied_by:
        return Ending(RunState.DENIED, f"denied by {record.denied_by}")
    because = record.failed_error or record.undone_because
    failed = f"{record.failed_step}: " if record.failed_step else ""
    return Ending(RunState.ROLLED_BACK, failed + because)


def _give_up_looks(session: RunSession) -> None:
    """Steps that looked beside others when the process died: nobody looks again.

    Whoever sends the run forward later needs what any other look answers: those stay in doubt.
    """
    for name in session.record.in_state(StepState.UNCERTAIN):
        if session.playbook.step(name).joined_before:
            why = "cut off while it looked; not captured"
            session.write(EventType.STEP_SKIPPED, {"step": name, "why": why})


async def take_back_node(session: RunSession, node: str) -> str:
    """Undo one node's steps; says what stands in the way, or ""."""
    node_run = session.record.node_runs[node]
    for step in reversed(_undone_with(session, node_run.failed_step)):
        name = instance_of(step.id, node)
        past = session.record.steps[name]
        if past.state not in UNDOABLE or not past.acted:
            continue
        if step.safety is Safety.DESTRUCTIVE:
            return f"{name} cannot be undone: {node_run.failed_error}".rstrip(": ")
        if step.undo is not None and not await _undo(session, step, node):
            return f"{name} could not be undone: {past.error}"
    return ""


def _undone_with(session: RunSession, failed_step: str) -> Sequence[Step]:
    """What ran because of a failure stays, unless a person takes the whole run back."""
    steps = session.playbook.steps
    if not failed_step or session.request.undo:
        return steps
    return steps[: [step.id for step in steps].index(failed_step) + 1]


async def expire(session: RunSession) -> Ending:
    """Nobody said yes in time: keep the cordon and free the standbys, or take all back."""
    _give_up_looks(session)
    approval = session.playbook.approval
    if approval is not None and approval.on_expire is OnExpire.ABORT:
        ending = await roll_back(session)
        if ending.result is RunState.NEEDS_HUMAN:
            return ending
        return Ending(RunState.EXPIRED, "the approval expired; all was taken back")
    for node in session.record.node_runs:
        for step in reversed(session.playbook.steps):
            name = instance_of(step.id, node)
            held = step.uses == "standby.acquire" and session.record.steps[name].state in UNDOABLE
            if held and not await _undo(session, step, node):
                return Ending(RunState.NEEDS_HUMAN, f"{name} was not released")
    why = "the approval expired; standbys are free again, cordons stay"
    return Ending(RunState.EXPIRED, why)


async def _undo(session: RunSession, step: Step, node: str) -> bool:
    name = instance_of(step.id, node)
    arguments = session.record.steps[name].arguments
    session.write(EventType.UNDO_INTENT, {"step": name, "do": arguments})
    try:
        async with asyncio.timeout(step.timeout_s):
            done = await _take_back(session, step, node, arguments)
    except LockedError:
        raise
    except (TimeoutError, ActionFailed, BrctlError, ExpressionError) as exc:
        error = str(exc) or f"not undone within {step.timeout_s:g} s"
        session.write(EventType.UNDO_RESULT, {"step": name, "ok": False, "error": error})
        return False
    if KEY in arguments:
        Keys(session.context.state_dir).forget(str(arguments[KEY]), session.run.name)
    session.write(
        EventType.UNDO_RESULT,
        {"step": name, "ok": True, "changed": done.changed, "say": done.say},
    )
    return True


async def _take_back(
    session: RunSession, step: Step, node: str, arguments: Mapping[str, Json]
) -> ActionResult:
    if isinstance(step.undo, Hook):
        by_hook = expand(step.undo.arguments, session.scope(node))
        return await ACTIONS[step.undo.uses].apply(session.context, by_hook)  # type: ignore[arg-type]  # a mapping stays one
    return await action_of(step, instance_of(step.id, node)).undo(session.context, arguments)
