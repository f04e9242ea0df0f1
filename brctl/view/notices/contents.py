"""One notice, and the run it may be about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from brctl.model.notice import NoticeEvent, NoticeState, PageSeverity
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import RunState
from brctl.model.verdict import Verdict
from brctl.playbook.run import Run


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run when it is told about.

    Attributes:
        verdict: The verdict behind it; None for a run that a person asked for.
        ending: Result and reason when they are known before the journal has its last line, as
            hooks are.
    """

    context: str
    run: Run
    verdict: Verdict | None
    ending: tuple[RunState, str] | None = None

    @property
    def result(self) -> RunState:
        """How it stands or ended."""
        return self.ending[0] if self.ending else self.run.state

    @property
    def why(self) -> str:
        """Why it ended so."""
        return self.ending[1] if self.ending else last_text(self.run.events, EventType.END, "why")


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell.

    Attributes:
        key: Stable over repeats of one fault; every sink's deduplication hangs on it.
        mark: Two notices of one key with the same mark say the same and are told once.
        pages_again: A person must hear of it even though somebody acknowledged the fault.
        fresh: It was gone in between, so having told it before does not count.
        subject: Whom it is about: the job, or the folded nodes.
        details: Lines for whoever wants more: a thread, custom details.
    """

    event: NoticeEvent
    state: NoticeState
    key: str
    mark: str
    severity: PageSeverity
    context: str
    summary: str
    at: datetime
    pages_again: bool = False
    fresh: bool = False
    subject: str = ""
    fault: str = ""
    nodes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    job: str = ""
    do: str = ""
    why: str = ""
    cost_if_wrong: str = ""
    needs: str = ""
    runbook: str = ""
    channel: str = ""
    details: tuple[str, ...] = ()
    verdict: Verdict | None = None
    run: RunFacts | None = None


def last_text(events: Sequence[Event], kind: EventType, key: str) -> str:
    """A field of the newest event of a type; "" without one."""
    found: Json = next((e.fields.get(key) for e in reversed(events) if e.type is kind), "")
    return str(found or "")
