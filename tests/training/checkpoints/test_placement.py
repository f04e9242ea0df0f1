"""Where backups go: what each rule loses, and that nothing is lost by the chosen one."""

import pytest

from brctl.training.checkpoints.__main__ import describe
from brctl.training.checkpoints.layout import parse_layout
from brctl.training.checkpoints.matching import match
from brctl.training.checkpoints.placement import (
    NEXT_MACHINE,
    Backups,
    count_losses,
    half_shift,
    machine_shift,
    matched,
    next_machine,
    place_backups,
    shifted,
)

FIG_9 = ("tp=2,pp=4,dp=2", 2)
FIG_9_DP = ("tp=2,dp=2,pp=4", 2)
TABLE_5 = ("tp=8,dp=32,pp=8", 16)
TABLE_5_PP = ("tp=8,pp=8,dp=32", 16)
LARGE = ("tp=8,dp=64,pp=16", 16)
TWO_GROUPS = ("tp=4,dp=8,pp=4", 8)
ONE_GROUP = ("tp=8,dp=8,pp=4", 8)


def lost(spec: tuple[str, int], backups: Backups) -> dict[str, str]:
    """What is lost as `kind: lost/groups`, without the kinds that lose nothing."""
    losses = count_losses(parse_layout(*spec), backups)
    return {loss.kind: f"{loss.lost}/{loss.groups}" for loss in losses if loss.lost}


@pytest.mark.parametrize(
    ("spec", "one_further", "neighbour"),
    [
        (FIG_9, {}, {"pp": "4/4"}),
        (FIG_9_DP, {}, {"dp": "8/8"}),
        (TABLE_5, {"pp": "256/256"}, {"dp": "64/64"}),
        (TABLE_5_PP, {}, {"pp": "256/256"}),
        (LARGE, {"pp": "512/512"}, {"dp": "128/128"}),
        (TWO_GROUPS, {"pp": "32/32"}, {"dp": "16/16"}),
        (ONE_GROUP, {}, {"dp": "32/32"}),
    ],
)
def test_shifts_by_machine_lose_nothing_where_others_lose_groups(
    spec: tuple[str, int], one_further: dict[str, str], neighbour: dict[str, str]
) -> None:
    """dp+1 breaks where two TP groups share a machine; the next machine shares a group."""
    layout = parse_layout(*spec)
    assert lost(spec, shifted(layout, layout.size("pp") // 2, 1)) == one_further
    assert lost(spec, machine_shift(layout)) == {}
    assert lost(spec, half_shift(layout)) == {}
    assert lost(spec, next_machine(layout)) == neighbour
    assert place_backups(layout).rule == "pp+PP/2, dp+DP/2"


@pytest.mark.parametrize("spec", [("tp=2,dp=4,pp=4", 8), ("tp=4,dp=2,pp=4", 8)])
def test_a_group_on_every_machine_cannot_be_covered(spec: tuple[str, int]) -> None:
    """The next machine is taken, and what it does not cover is said."""
    layout = parse_layout(*spec)
    placement = place_backups(layout)
    assert matched(layout) is None
    assert placement.rule == NEXT_MACHINE
    assert [(loss.kind, loss.lost) for loss in placement.uncovered] == [("pp", 8)]


def test_the_order_of_the_axes_decides() -> None:
    """The same sizes are covered when stages lie beside each other."""
    assert place_backups(parse_layout("tp=4,pp=4,dp=2", 8)).uncovered == ()


def test_one_axis_alone_covers_machines_and_not_the_group() -> None:
    """A neighbouring rank is often on the same machine; a neighbouring machine never is."""
    spec = ("dp=64", 8)
    layout = parse_layout(*spec)
    assert lost(spec, shifted(layout, 0, 1)) == {"machine": "8/8", "dp": "1/1"}
    assert lost(spec, machine_shift(layout)) == {"dp": "1/1"}
    assert lost(spec, next_machine(layout)) == {"dp": "1/1"}
    assert place_backups(layout).rule == NEXT_MACHINE


def test_the_next_machine_loses_what_the_lab_powers_off() -> None:
    """TP2 PP2 DP2, a rank a machine: its four TP groups die with their backups."""
    spec = ("tp=2,pp=2,dp=2", 1)
    assert lost(spec, next_machine(parse_layout(*spec))) == {"tp": "4/4"}
    assert place_backups(parse_layout(*spec)).uncovered == ()


def test_figure_9_of_byterobust_is_as_valid_as_the_rule_taken() -> None:
    """Ranks 8 and 9 exchange with 2 and 3 there: (pp xor 1, dp+1)."""
    layout = parse_layout(*FIG_9)
    position = layout.coordinates
    printed = tuple(
        layout.rank_at({**position(r), "pp": position(r)["pp"] ^ 1, "dp": position(r)["dp"] + 1})
        for r in range(layout.world_size)
    )
    assert printed[8] == 2
    assert lost(FIG_9, printed) == {}


@pytest.mark.parametrize("spec", [FIG_9, FIG_9_DP, TABLE_5, LARGE, TWO_GROUPS, ONE_GROUP])
def test_what_is_chosen_is_an_exchange_and_nobody_keeps_two(spec: tuple[str, int]) -> None:
    """Two machines lost together lose data half as often as with a longer cycle."""
    backups = place_backups(parse_layout(*spec)).backups
    assert sorted(backups) == list(range(len(backups)))
    assert all(backups[backups[rank]] == rank for rank in range(len(backups)))


def test_matching_finds_what_no_shift_does() -> None:
    """With context parallelism as the axis that spreads, shifting dp and pp moves nothing away."""
    layout = parse_layout("tp=2,cp=4,ep2=4", 2)
    placement = place_backups(layout)
    assert placement.rule == "matching"
    assert placement.uncovered == ()


def test_expert_groups_count() -> None:
    """They lie over dp and cp here, and the neighbour rule loses them too."""
    spec = ("tp=8,cp=2,dp=16,pp=8,ep=8:cp+dp", 8)
    layout = parse_layout(*spec)
    assert lost(spec, next_machine(layout)) == {"cp": "1024/1024", "ep": "256/256"}
    assert place_backups(layout).uncovered == ()


def test_replicas_hold_the_same_weights_unless_experts_differ() -> None:
    """Ranks of one DP group with different experts are no replicas of each other."""
    plain = parse_layout("tp=2,dp=4", 2)
    expert = parse_layout("tp=2,dp=4,ep=2:dp", 2)
    assert plain.replica_key(0) == plain.replica_key(2) == plain.replica_key(6)
    assert expert.replica_key(0) != expert.replica_key(2)
    assert expert.replica_key(0) == expert.replica_key(4)


def test_matching_moves_others_when_pairs_do_not_suffice() -> None:
    """Three in a triangle cannot be paired; a cycle covers them, and a path is turned for it."""
    assert sorted(match((0b110, 0b101, 0b011)) or ()) == [0, 1, 2]
    assert match((0b0110, 0b0101, 0b1011, 0b0100)) is not None
    assert match((0b110, 0b001, 0b001)) is None


def test_a_thousand_machines_are_matched_in_seconds() -> None:
    """Nobody waits for it at the start of a job."""
    layout = parse_layout("tp=2,cp=32,xp=32", 2)
    placement = place_backups(layout)
    assert (placement.rule, layout.machines) == ("matching", 1024)


def test_the_command_prints_the_table() -> None:
    """One row a rule, the evictions that lose data, and what is chosen."""
    lines = describe(parse_layout(*TABLE_5))
    (one,) = [line for line in lines if line.startswith("pp+PP/2, dp+1")]
    assert " ".join(one.split()) == "pp+PP/2, dp+1 machine 0/128 tp 0/256 dp 0/64 pp 256/256"
    assert lines[-1] == "chosen: pp+PP/2, dp+DP/2; any machine and any group may go"


@pytest.mark.parametrize(
    ("text", "ranks", "part"),
    [
        ("tp=0", 1, "'tp=0'"),
        ("tp", 1, "'tp'"),
        ("tp=2,tp=2", 1, "every name once"),
        ("tp=2,dp=3", 4, "make 6 ranks"),
        ("dp=4,ep=2:cp", 1, "cp, no axis"),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused(text: str, ranks: int, part: str) -> None:
    """The message repeats the faulty part."""
    with pytest.raises(ValueError, match=part):
        parse_layout(text, ranks)
