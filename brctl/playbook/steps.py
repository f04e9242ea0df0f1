"""The life of a step: one table, and nothing outside it is possible.

A step that was running when the controller died is UNCERTAIN: its intent is on disk and its result
is not. Looking at the world settles it; nothing else may.
"""

from collections.abc import Mapping
from enum import StrEnum


class StepState(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNCERTAIN = "uncertain"
    UNDOING = "undoing"
    UNDONE = "undone"
    UNDO_FAILED = "undo-failed"


class StepEvent(StrEnum):
    """What can happen to a step."""

    START = "start"
    SUCCEED = "succeed"
    FAIL = "fail"
    SKIP = "skip"
    LOSE = "lose"
    UNDO = "undo"


STEP_TRANSITIONS: Mapping[StepState, Mapping[StepEvent, StepState]] = {
    StepState.PENDING: {StepEvent.START: StepState.RUNNING, StepEvent.SKIP: StepState.SKIPPED},
    StepState.RUNNING: {
        StepEvent.SUCCEED: StepState.DONE,
        StepEvent.FAIL: StepState.FAILED,
        StepEvent.LOSE: StepState.UNCERTAIN,
    },
    StepState.UNCERTAIN: {
        StepEvent.SUCCEED: StepState.DONE,
        StepEvent.START: StepState.RUNNING,
        # It only looked, and the run that is taken back does not look again.
        StepEvent.SKIP: StepState.SKIPPED,
        StepEvent.UNDO: StepState.UNDOING,
    },
    StepState.FAILED: {StepEvent.START: StepState.RUNNING, StepEvent.UNDO: StepState.UNDOING},
    StepState.DONE: {StepEvent.UNDO: StepState.UNDOING},
    StepState.UNDOING: {
        StepEvent.SUCCEED: StepState.UNDONE,
        StepEvent.FAIL: StepState.UNDO_FAILED,
        # An undo that was cut off is started again: every undo is safe to repeat.
        StepEvent.UNDO: StepState.UNDOING,
    },
    # What was taken back, or could not be, is done again when a person sends the run forward.
    StepState.UNDO_FAILED: {StepEvent.UNDO: StepState.UNDOING, StepEvent.START: StepState.RUNNING},
    StepState.UNDONE: {StepEvent.START: StepState.RUNNING},
    StepState.SKIPPED: {},
}


class IllegalMoveError(ValueError):
    """A step cannot do this from where it stands; nothing was changed."""


def advance(state: StepState, event: StepEvent) -> StepState:
    """The state after an event.

    Raises:
        IllegalMoveError: The table has no such move.
    """
    following = STEP_TRANSITIONS[state].get(event)
    if following is None:
        raise IllegalMoveError(f"a step that is {state} cannot {event}")
    return following
