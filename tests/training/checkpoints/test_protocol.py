"""The rule for slots, in every state that ranks can reach.

How often a rule loses all steps depends on how long copies and transfers take; whether it can does
not. So every order of events is looked at, in place of draws from durations that nobody measured.
"""

import pytest

from brctl.training.checkpoints.protocol import NOT_FINITE, Save, Slots, decide_save, vote
from tests.training.checkpoints.protocol_model import (
    OverwriteRule,
    common_own_step,
    common_step,
    reachable,
)


@pytest.mark.parametrize(
    ("rule", "survives"),
    [(OverwriteRule.BEFORE_UPDATE, False), (OverwriteRule.BEFORE_COLLECTIVE, True),
     (OverwriteRule.THREE_SLOTS, True), (OverwriteRule.EVERYONE_HAS_THE_OTHER, True)],
    ids=lambda value: value.name.lower() if isinstance(value, OverwriteRule) else "",
)  # fmt: skip
def test_after_a_crash_of_all_processes_a_common_step_is_left(
    rule: OverwriteRule, *, survives: bool
) -> None:
    """Waiting before the own update is not enough: a fast rank overwrites what a slow one needs."""
    assert all(map(common_own_step, reachable(rule, 2, sends=not survives))) == survives


@pytest.mark.parametrize(
    ("rule", "ranks", "survives"),
    [(OverwriteRule.BEFORE_UPDATE, 2, False), (OverwriteRule.BEFORE_COLLECTIVE, 2, False),
     (OverwriteRule.THREE_SLOTS, 2, False), (OverwriteRule.EVERYONE_HAS_THE_OTHER, 2, True),
     (OverwriteRule.EVERYONE_HAS_THE_OTHER, 3, True)],
    ids=lambda value: value.name.lower() if isinstance(value, OverwriteRule) else "",
)  # fmt: skip
def test_after_the_loss_of_any_machine_a_common_step_is_left(
    rule: OverwriteRule, ranks: int, *, survives: bool
) -> None:
    """Only the rule that looks at backups too never loses it, however late they are."""
    states = reachable(rule, ranks)
    assert all(common_step(state, lost) for state in states for lost in range(ranks)) == survives


def test_under_the_last_rule_no_slot_changes_while_it_is_sent() -> None:
    """So a backup never begins with one step and ends with another."""
    states = list(reachable(OverwriteRule.EVERYONE_HAS_THE_OTHER, 2))
    sending = [(rank, rank.sending[1]) for state in states for rank in state if rank.sending]
    assert sending
    assert all(step in rank.own for rank, step in sending)


def test_under_the_last_rule_saves_go_on() -> None:
    """Newer steps become common, in either slot; a rule that never saves is safe as well."""
    whole = [
        state
        for state in reachable(OverwriteRule.EVERYONE_HAS_THE_OTHER, 2)
        if all(set(rank.own) == set(rank.backup) == {1, 2} for rank in state)
    ]
    assert {rank.kept.kept_index for state in whole for rank in state} == {0, 1}


def test_a_save_waits_for_the_last_backup() -> None:
    """A rank whose backup lags holds everybody's slot; when it caught up, the save is made."""
    slots = Slots(kept=8, kept_index=0)
    assert decide_save(slots, min(vote(8, 8), vote(8, 7))) is Save.SKIP_LAGGING
    assert decide_save(slots, min(vote(8, 8), vote(8, 8))) is Save.WRITE
    assert slots.written(9) == Slots(kept=9, kept_index=1)


def test_a_loss_that_is_no_number_replaces_nothing() -> None:
    """One rank's NaN keeps all ranks' copies of before."""
    agreed = min(vote(8, 8), vote(8, 8, finite=False))
    assert agreed == NOT_FINITE
    assert decide_save(Slots(kept=8), agreed) is Save.SKIP_NOT_FINITE


def test_a_rank_that_cannot_save_is_told_from_one_that_lags() -> None:
    """Its reason is another one, and it does not pass by itself."""
    assert decide_save(Slots(kept=8), vote(8, 8, able=False)) is Save.SKIP_CANNOT
