"""From which step and which copies a job resumes."""

from brctl.training.checkpoints.layout import parse_layout
from brctl.training.checkpoints.placement import place_backups
from brctl.training.checkpoints.restore import (
    Saved,
    ShardCopy,
    Tier,
    choose_restore,
    surviving,
)

LAYOUT = parse_layout("tp=2,pp=2,dp=2", 1)
BACKUPS = place_backups(LAYOUT).backups


def copies(step: int, tier: Tier = Tier.MEMORY, attempt: int = 1) -> list[ShardCopy]:
    """Every shard of a step, on its own machine and at its backup's."""
    saved = Saved(attempt, step)
    own = [ShardCopy(rank, saved, tier, rank) for rank in range(8)]
    return own + [ShardCopy(rank, saved, tier, BACKUPS[rank]) for rank in range(8)]


def test_the_newest_step_that_everybody_has_is_taken() -> None:
    """Seven ranks with a newer one do not matter: steps are never mixed."""
    newer = [source for source in copies(9) if source.rank != 3]
    choice = choose_restore(LAYOUT, [*copies(8), *newer])
    assert choice is not None
    assert choice.saved == Saved(1, 8)
    assert {source.saved for source in choice.sources.values()} == {Saved(1, 8)}
    assert all(source.machine == rank for rank, source in choice.sources.items())


def test_every_group_of_machines_may_go() -> None:
    """The twelve TP, PP and DP groups in turn: lost shards come from their peers."""
    groups = [group for kind in LAYOUT.groups().values() for group in kind]
    assert len(groups) == 12
    for group in groups:
        gone = [machine for machine in range(8) if group >> machine & 1]
        choice = choose_restore(LAYOUT, surviving(copies(8), gone))
        assert choice is not None
        assert {choice.sources[rank].machine for rank in gone}.isdisjoint(gone)


def test_memory_far_away_goes_before_the_own_disk() -> None:
    """And the own disk before another's."""
    without_own = [s for s in copies(8) if (s.rank, s.machine) != (3, 3)]
    choice = choose_restore(LAYOUT, [*copies(8, Tier.DISK), *without_own])
    assert choice is not None
    assert choice.sources[3] == ShardCopy(3, Saved(1, 8), Tier.MEMORY, BACKUPS[3])
    on_disk = choose_restore(LAYOUT, copies(8, Tier.DISK))
    assert on_disk is not None
    assert on_disk.sources[3].machine == 3


def test_an_older_whole_step_on_disk_is_better_than_a_torn_one_in_memory() -> None:
    """A rank and its backup gone: the newest step of memory lost a shard."""
    torn = surviving(copies(8), [3, BACKUPS[3]])
    choice = choose_restore(LAYOUT, [*torn, *copies(5, Tier.DISK)])
    assert choice is not None
    assert (choice.saved.step, choice.sources[0].tier) == (5, Tier.DISK)
    assert choose_restore(LAYOUT, torn) is None


def test_a_step_that_led_to_nan_is_not_offered_twice() -> None:
    """The next older one is, and none if there is none."""
    both = [*copies(8), *copies(5, Tier.DISK)]
    choice = choose_restore(LAYOUT, both, never={Saved(1, 8)})
    assert choice is not None
    assert choice.saved.step == 5
    assert choose_restore(LAYOUT, both, never={Saved(1, 8), Saved(1, 5)}) is None


def test_a_step_of_a_later_attempt_is_newer_and_never_mixed_with_an_earlier_one() -> None:
    """A machine back from repair brings step 9 of the first attempt; the second redid it."""
    stale = [source for source in copies(9, attempt=1) if source.rank < 4]
    redone = [source for source in copies(9, attempt=2) if source.rank >= 4]
    assert choose_restore(LAYOUT, [*stale, *redone]) is None
    choice = choose_restore(LAYOUT, [*copies(9, attempt=1), *copies(7, attempt=2)])
    assert choice is not None
    assert choice.saved == Saved(2, 7)
