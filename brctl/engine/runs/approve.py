"""The gate of a run: who must say yes, who did, and what happens when nobody does."""

from collections.abc import Sequence
from datetime import timedelta

from brctl.engine.runs.guard_facts import Guarding, GuardQuestion, demands_by_guards
from brctl.engine.runs.plan import demands_on
from brctl.engine.runs.run_files import load_answers
from brctl.engine.runs.session import Ending, RunEnds, RunSession
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Need, Step
from brctl.model.runs.result import RunState
from brctl.model.units import parse_rfc3339, rfc3339, utc_text
from brctl.playbook.approvals import (
    PEOPLE,
    Demand,
    confirmation_text,
    is_confirmed,
    missing,
    strictest,
)
from brctl.playbook.plan import nodes_named


async def pass_gate(session: RunSession, step: Step) -> bool:
    """Let the run through to the step behind the gate; whether people were needed for it.

    Raises:
        RunEnds: It must wait, was denied, or the approval expired; once all nodes are quiet, the
            executor takes back what there is to take back.
    """
    if _is_late(session):
        session.write(
            EventType.APPROVAL_EXPIRED, {"step": step.id, "asked_at": session.record.asked_at}
        )
        raise RunEnds(Ending(RunState.EXPIRED))
    demands = await _demands(session)
    await _collect_answers(session, strictest(demands))
    given = session.record.approvals.get(session.digest, set())
    lacking = missing(demands, given, session.record.started_by, session.context.people.groups_of)
    if lacking:
        _ask(session, step, demands, lacking)
    return bool(given)


async def _demands(session: RunSession) -> tuple[Demand, ...]:
    """Asked anew each time: a freeze may have begun since the plan."""
    guarding = Guarding(session.context, session.playbook, session.record)
    question = GuardQuestion(
        session.inputs, session.scope(), session.takes(), kinds=frozenset({"freeze"})
    )
    asking = await guarding.check(question)
    policies = demands_on(session.context, session.playbook, session.scope())
    return (*policies, *demands_by_guards(asking))


def _is_late(session: RunSession) -> bool:
    approval, asked_at = session.playbook.approval, session.record.asked_at
    if approval is None or not asked_at:
        return False
    waited_s = (session.context.clock.now() - parse_rfc3339(asked_at)).total_seconds()
    return waited_s > approval.expires_s


async def _collect_answers(session: RunSession, need: Need) -> None:
    for answer in load_answers(session.run.folder):
        # An answer to another plan than the one that would run is no answer.
        if answer.plan != session.digest:
            continue
        if not answer.yes:
            session.write(EventType.APPROVAL_DENIED, {"by": answer.by})
            raise RunEnds(Ending(RunState.DENIED))
        _approve(session, answer.by, "approve")
    request = session.request
    if PEOPLE[need] and is_confirmed(
        session.playbook, request.typed, yes=request.yes, expected=_expected(session)
    ):
        _approve(session, request.by, "command line")


def _approve(session: RunSession, by: str, how: str) -> None:
    if by not in session.record.approvals.get(session.digest, set()):
        session.write(EventType.APPROVAL_GIVEN, {"by": by, "how": how, "plan": session.digest})


def _expected(session: RunSession) -> str:
    nodes = nodes_named(session.playbook, session.inputs.inputs)
    return confirmation_text(session.playbook, len(nodes), str(session.inputs.job["name"]))


def _ask(
    session: RunSession, step: Step, demands: Sequence[Demand], lacking: Sequence[str]
) -> None:
    who = " and ".join(lacking)
    approval, now = session.playbook.approval, session.context.clock.now()
    asked_at = parse_rfc3339(session.record.asked_at) if session.record.asked_at else now
    expires_at = asked_at + timedelta(seconds=approval.expires_s if approval else 0.0)
    session.write(
        EventType.APPROVAL_ASKED,
        {
            "step": step.id,
            "need": PEOPLE[strictest(demands)],
            "who": who,
            "demands": [demand.as_json() for demand in demands],
            "answer": _expected(session),
            "plan": session.digest,
            "asked_at": rfc3339(now),
            "expires_at": rfc3339(expires_at),
        },
    )
    why = f"{who} must approve before {step.id}, until {utc_text(expires_at)}"
    raise RunEnds(Ending(RunState.WAITING, why))
