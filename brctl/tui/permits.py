"""Which action makes sense on what, and if not, why not: one table for footer and action sheet."""

from collections.abc import Callable, Mapping

from brctl.engine.incidents.verdict_store import VerdictState
from brctl.playbook.run import UnreadableRun
from brctl.tui.session.facts import Facts
from brctl.tui.target import Target, waiting_run

YES = ""
"""No reason against it."""

Permit = Callable[[Target, Facts], str]


def _nodes(target: Target, facts: Facts) -> str:
    return YES if target.nodes else "no node is chosen"


def _one_node(target: Target, facts: Facts) -> str:
    return YES if len(target.nodes) == 1 else "exactly one node must be chosen"


def _something(target: Target, facts: Facts) -> str:
    return (
        YES if target.nodes or target.verdict or target.run or target.job else "nothing is chosen"
    )


def _verdict(target: Target, facts: Facts) -> str:
    return YES if target.verdict else "no verdict names this"


def _fix(target: Target, facts: Facts) -> str:
    stored = facts.verdict(target.verdict)
    if stored is None:
        return "no verdict names this; x diagnoses it"
    if stored.state is not VerdictState.OPEN:
        return f"{stored.verdict.id} is {stored.state.value}"
    verdict = stored.verdict
    return YES if verdict.playbook else f"{verdict.id}: a person must act, {verdict.say}"


def _writable(facts: Facts) -> str:
    return "this is read-only mode" if facts.readonly else YES


def _answer(target: Target, facts: Facts) -> str:
    if waiting_run(target, facts) is not None:
        return _writable(facts)
    run = facts.run(target.run)
    if run is not None:
        return f"{run.name} asks nothing; it is {run.state}"
    waiting = len(facts.waiting_runs)
    return f"{waiting} runs wait: choose one on screen 3" if waiting else "no run waits"


def _rollback(target: Target, facts: Facts) -> str:
    run = facts.run(target.run)
    if run is None:
        return "no run is chosen"
    if isinstance(run, UnreadableRun):
        return f"{run.name} cannot be read"
    if run.alive:
        return f"{run.name} is running"
    return _writable(facts)


def _job(target: Target, facts: Facts) -> str:
    return YES if target.job or facts.jobs else "no job is known"


PERMITS: Mapping[str, Permit] = {
    "detail": _something, "why": _verdict, "diagnose": _something, "fix": _fix,
    "approve": _answer, "deny": _answer, "rollback": _rollback, "ssh": _one_node, "logs": _job,
    "stacks": _job, "timeline": _verdict, "evidence": _something, "copy_nodes": _nodes,
}  # fmt: skip
"""Actions that need something; all others are always allowed."""


def reason_against(action: str, target: Target, facts: Facts) -> str:
    """Why an action is not allowed now, "" when it is."""
    permit = PERMITS.get(action)
    return permit(target, facts) if permit else YES


def allowed(action: str, target: Target, facts: Facts) -> bool:
    """Whether an action makes sense and is permitted now."""
    return reason_against(action, target, facts) == YES
