"""One line of a journal: of a run, or of a job's code changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from brctl.model.runs.playbook import Json

EVENTS_VERSION = "1.1"


class EventType(StrEnum):
    """What a journal line records. A run's first line is VERSION, its last one END.

    The `code.` types are lines of a job's ledger of code changes.
    """

    VERSION = "version"
    RUN_STARTED = "run.started"
    RUN_RESUMED = "run.resumed"
    GUARDS_CHECKED = "guards.checked"
    NODE_STARTED = "node.started"
    NODE_ENDED = "node.ended"
    STEP_SKIPPED = "step.skipped"
    STEP_INTENT = "step.intent"
    STEP_RESULT = "step.result"
    STEP_SETTLED = "step.settled"
    ROLLBACK_STARTED = "rollback.started"
    UNDO_INTENT = "undo.intent"
    UNDO_RESULT = "undo.result"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_GIVEN = "approval.given"
    APPROVAL_DENIED = "approval.denied"
    APPROVAL_EXPIRED = "approval.expired"
    HOOK_RESULT = "hook.result"
    CODE_RECORDED = "code.recorded"
    CODE_APPLIED = "code.applied"
    CODE_ROLLED_BACK = "code.rolled-back"
    CODE_UNDONE = "code.undone"
    CODE_STARTED = "code.started"
    NOTE = "note"
    END = "end"


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, when, in which place of the run's order.

    Attributes:
        seq: 0, 1, 2, ... without gaps; a missing number is a lost line.
        fields: Whatever else the type carries.
    """

    seq: int
    type: EventType
    run: str
    at: datetime
    fields: Mapping[str, Json]
