"""The gate of a run: who must say yes, who did, and what happens when nobody does."""

from collections.abc import Sequence
from datetime import timedelta

from brctl.engine.runs.guard_facts import Guarding, demands_by_guards
from brctl.engine.runs.plan import demands_on
from brctl.engine.runs.run_files import load_approvals
from brctl.engine.runs.session import Ending, RunDesk, RunEnds
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Need, Step
from brctl.model.units import parse_rfc3339, rfc3339
from brctl.playbook.approvals import (
    PEOPLE,
    Demand,
    confirmation_text,
    is_confirmed,
    missing,
    strictest,
)
from brctl.playbook.plan import nodes_named


async def pass_gate(desk: RunDesk, step: Step) -> bool:
    """Let the run through to the step behind the gate; whether people were needed for it.

    Raises:
        RunEnds: It must wait, was denied, or the approval expired; once all nodes are quiet, the
            executor takes back what there is to take back.
    """
    if _is_late(desk):
        desk.write(EventType.APPROVAL_EXPIRED, {"step": step.id, "asked_at": desk.record.asked_at})
        raise RunEnds(Ending("expired", ExitCode.WAITING))
    demands = await _demands(desk)
    await _collect_answers(desk, strictest(demands))
    given = desk.record.approvals.get(desk.digest, set())
    lacking = missing(demands, given, desk.record.started_by, desk.ground.groups_of)
    if lacking:
        _ask(desk, step, demands, lacking)
    return bool(given)


async def _demands(desk: RunDesk) -> tuple[Demand, ...]:
    """Asked anew each time: a freeze may have begun since the plan."""
    guarding = Guarding(desk.ground, desk.playbook, desk.site, desk.record)
    asking = await guarding.check(desk.inputs, desk.scope(), desk.takes(), {"freeze"})
    policies = demands_on(desk.ground, desk.playbook, desk.scope())
    return (*policies, *demands_by_guards(asking))


def _is_late(desk: RunDesk) -> bool:
    approval, asked_at = desk.playbook.approval, desk.record.asked_at
    if approval is None or not asked_at:
        return False
    waited_s = (desk.ground.now() - parse_rfc3339(asked_at)).total_seconds()
    return waited_s > approval.expires_s


async def _collect_answers(desk: RunDesk, need: Need) -> None:
    for answer in load_approvals(desk.site.run_dir):
        # An answer to another plan than the one that would run is no answer.
        if answer.plan != desk.digest:
            continue
        if not answer.yes:
            desk.write(EventType.APPROVAL_DENIED, {"by": answer.by})
            raise RunEnds(Ending("denied", ExitCode.WAITING))
        _approve(desk, answer.by, "approve")
    request = desk.request
    if PEOPLE[need] and is_confirmed(
        desk.playbook, request.typed, yes=request.yes, expected=_expected(desk)
    ):
        _approve(desk, request.by, "command line")


def _approve(desk: RunDesk, by: str, how: str) -> None:
    if by not in desk.record.approvals.get(desk.digest, set()):
        desk.write(EventType.APPROVAL_GIVEN, {"by": by, "how": how, "plan": desk.digest})


def _expected(desk: RunDesk) -> str:
    nodes = nodes_named(desk.playbook, desk.inputs.inputs)
    return confirmation_text(desk.playbook, len(nodes), str(desk.inputs.job["name"]))


def _ask(desk: RunDesk, step: Step, demands: Sequence[Demand], lacking: Sequence[str]) -> None:
    who = " and ".join(lacking)
    approval, now = desk.playbook.approval, desk.ground.now()
    asked_at = parse_rfc3339(desk.record.asked_at) if desk.record.asked_at else now
    expires_at = asked_at + timedelta(seconds=approval.expires_s if approval else 0.0)
    desk.write(
        EventType.APPROVAL_ASKED,
        {
            "step": step.id,
            "need": PEOPLE[strictest(demands)],
            "who": who,
            "demands": [demand.as_json() for demand in demands],
            "answer": _expected(desk),
            "plan": desk.digest,
            "asked_at": rfc3339(now),
            "expires_at": rfc3339(expires_at),
        },
    )
    why = f"{who} must approve before {step.id}, until {expires_at:%H:%M} UTC"
    raise RunEnds(Ending("waiting", ExitCode.WAITING, why))
