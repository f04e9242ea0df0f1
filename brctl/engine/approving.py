"""The gate of a run: who must say yes, who did, and what happens when nobody does."""

from brctl.engine.planning import need_of
from brctl.engine.run_desk import Ending, RunDesk, RunEnds
from brctl.engine.run_files import load_approvals
from brctl.engine.undoing import expire, roll_back
from brctl.model.event import EventType
from brctl.model.exit_codes import ExitCode
from brctl.model.playbook import Need, Step
from brctl.model.units import parse_rfc3339, rfc3339
from brctl.playbook.approvals import PEOPLE, confirmation_text, is_confirmed
from brctl.playbook.plan import nodes_named


async def pass_gate(desk: RunDesk, step: Step) -> bool:
    """Let the run through to the step behind the gate; whether people were needed for it.

    Raises:
        RunEnds: It must wait, was denied, or the approval expired.
    """
    if _is_late(desk):
        desk.write(EventType.APPROVAL_EXPIRED, {"step": step.id, "asked_at": desk.record.asked_at})
        raise RunEnds(await expire(desk))
    need = need_of(desk.ground, desk.playbook, desk.scope())
    await _collect_answers(desk, need)
    given = desk.record.approvals.get(desk.digest, set())
    if len(given) < PEOPLE[need]:
        _ask(desk, step, need, len(given))
    return bool(given)


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
            raise RunEnds(await roll_back(desk))
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


def _ask(desk: RunDesk, step: Step, need: Need, given: int) -> None:
    desk.write(
        EventType.APPROVAL_ASKED,
        {
            "step": step.id,
            "need": PEOPLE[need],
            "given": given,
            "answer": _expected(desk),
            "plan": desk.digest,
            "asked_at": rfc3339(desk.ground.now()),
        },
    )
    missing = PEOPLE[need] - given
    who = "one more person" if missing == 1 else f"{missing} more people"
    why = f"{who} must approve before {step.id}"
    raise RunEnds(Ending("waiting", ExitCode.WAITING, why))
