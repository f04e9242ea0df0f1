"""Which way a resume takes a run whose rollback did not come to its end.

Past a step that cannot be undone the rollback can go no further, so the default is forward. Where
an undo failed it is tried again. A person may choose the other way, once the rollback has ended.
"""

from dataclasses import dataclass

from brctl.model.runs.playbook import Playbook, Safety
from brctl.model.runs.result import RunState
from brctl.playbook.run_record import RunRecord
from brctl.playbook.steps import StepState


@dataclass(frozen=True, slots=True)
class Direction:
    """Where a resume goes, and why, in one sentence; "" when there is nothing to choose."""

    forward: bool
    why: str = ""


def direction_of(
    playbook: Playbook, record: RunRecord, *, forward_asked: bool = False
) -> Direction:
    """What `play resume` does; `forward_asked` is a person who asked for forward."""
    if not record.rolling_back or record.expired:
        return Direction(forward=False)
    if not may_turn(record):
        return Direction(forward=False, why="finishes the rollback, which was cut off")
    barrier = _barrier(playbook, record)
    if forward_asked or (barrier and not record.undone_because):
        because = f"{barrier} cannot be undone, so the rollback ends there" if barrier else "asked"
        return Direction(forward=True, why=f"goes forward again: {because}")
    if record.undone_because:
        return Direction(False, f"tries the rollback again, {record.undone_because}")
    return Direction(False, "tries the rollback again: an undo failed")


def may_turn(record: RunRecord) -> bool:
    """Whether a run can be sent forward: its rollback ended before it was through."""
    return (
        record.rolling_back
        and record.result is RunState.NEEDS_HUMAN
        and not record.denied_by
        and not record.expired
    )


def _barrier(playbook: Playbook, record: RunRecord) -> str:
    """The newest step on the way back that cannot be undone."""
    past = [name for name, step in record.steps.items() if step.acted]
    blocked = [
        name
        for name in past
        if playbook.step(name).safety is Safety.DESTRUCTIVE
        and record.steps[name].state is not StepState.SKIPPED
    ]
    return blocked[-1] if blocked else ""
