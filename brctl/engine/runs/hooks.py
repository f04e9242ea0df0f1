"""Hooks run beside the steps; what becomes of them never changes a run's result."""

import asyncio

from brctl.actions.contract import ActionFailed
from brctl.actions.registry import ACTIONS
from brctl.engine.runs.session import Ending, RunSession
from brctl.model.errors import BrctlError
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Hook, Json
from brctl.model.runs.result import FAILED_RESULTS
from brctl.playbook.expressions import ExpressionError
from brctl.playbook.templates import expand

HOOK_TIMEOUT_S = 30.0


async def run_hooks(session: RunSession, ending: Ending) -> None:
    """Those of `always`, after those of `on_failure` when the run failed."""
    # The journal's last line is not written yet, and hooks tell how the run ends.
    session.run.ending = (ending.result, ending.why)
    hooks = list(session.playbook.always)
    if ending.result in FAILED_RESULTS:
        hooks = [*session.playbook.on_failure, *hooks]
    for hook in hooks:
        session.write(EventType.HOOK_RESULT, await _run(session, hook))


async def _run(session: RunSession, hook: Hook) -> dict[str, Json]:
    try:
        arguments = expand(hook.arguments, session.scope())
        async with asyncio.timeout(HOOK_TIMEOUT_S):
            done = await ACTIONS[hook.uses].apply(session.context, arguments)  # type: ignore[arg-type]  # a mapping stays one
    except (ActionFailed, BrctlError, ExpressionError, TimeoutError, OSError) as exc:
        return {"uses": hook.uses, "ok": False, "error": str(exc)}
    return {"uses": hook.uses, "ok": True, "say": done.say}
