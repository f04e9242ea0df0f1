"""A step moves through its life by the table, and by nothing else."""

from itertools import product

import pytest

from brctl.playbook.steps import (
    STEP_TRANSITIONS,
    IllegalMoveError,
    StepEvent,
    StepState,
    advance,
)


@pytest.mark.parametrize(("state", "event"), list(product(StepState, StepEvent)))
def test_every_move_is_in_the_table_or_refused(state: StepState, event: StepEvent) -> None:
    """The whole product of states and events is decided by the table."""
    following = STEP_TRANSITIONS[state].get(event)
    if following is None:
        with pytest.raises(IllegalMoveError, match=f"{state} cannot {event}"):
            advance(state, event)
    else:
        assert advance(state, event) is following


def test_every_state_is_in_the_table_and_can_be_reached() -> None:
    """No state is forgotten, and none is out of reach of PENDING."""
    assert set(STEP_TRANSITIONS) == set(StepState)
    reached, frontier = {StepState.PENDING}, {StepState.PENDING}
    while frontier:
        frontier = {new for old in frontier for new in STEP_TRANSITIONS[old].values()} - reached
        reached |= frontier
    assert reached == set(StepState)


def test_only_an_intent_without_result_is_uncertain() -> None:
    """Doubt comes from a lost controller and from nothing else."""
    sources = {
        (state, event)
        for state, moves in STEP_TRANSITIONS.items()
        for event, new in moves.items()
        if new is StepState.UNCERTAIN
    }
    assert sources == {(StepState.RUNNING, StepEvent.LOSE)}
