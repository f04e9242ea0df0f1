"""Ask a person, during a run, something that is no gate of the playbook: may it go on?"""

from brctl.engine.runs.run_files import load_answers
from brctl.engine.runs.session import Ending, RunEnds, RunSession
from brctl.model.runs.event import EventType
from brctl.model.runs.result import RunState
from brctl.model.units import rfc3339


def may_go_on(session: RunSession, about: str, why: str, answer: str) -> None:
    """Return when somebody said yes to exactly this, else ask and end the run as waiting.

    A flag on the command line is no answer: whoever gave it did not know the question.

    Raises:
        RunEnds: It waits, or somebody said no, and then all is taken back.
    """
    question = f"{session.digest}/{about}"
    if question in session.record.approvals:
        return
    for given in load_answers(session.run.folder):
        if given.plan != question:
            continue
        if not given.yes:
            session.write(EventType.APPROVAL_DENIED, {"by": given.by})
            raise RunEnds(Ending(RunState.DENIED))
        fields = {"by": given.by, "how": "approve", "plan": question}
        session.write(EventType.APPROVAL_GIVEN, fields)
        return
    session.write(
        EventType.APPROVAL_ASKED,
        {
            "about": about,
            "need": 1,
            "who": "one person",
            "answer": answer,
            "plan": question,
            "why": why,
            "asked_at": rfc3339(session.context.clock.now()),
        },
    )
    raise RunEnds(Ending(RunState.WAITING, f"{why}: one person must say go on"))
