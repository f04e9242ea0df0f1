"""What the search must never do, whatever the tests say."""

import random
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from brctl.localise.conclude import conclude
from brctl.localise.problem import (
    Conclusion,
    FaultKind,
    Group,
    GroupResult,
    RoundPlan,
    SearchProblem,
    Stage,
)
from brctl.localise.strategy import Localiser

FOUND = frozenset(FaultKind) - {FaultKind.NONE, FaultKind.UNDECIDABLE}
Answer = Callable[[Group, random.Random], int]


def drive(
    problem: SearchProblem, fails: Answer, seed: int = 0
) -> tuple[Localiser, list[RoundPlan]]:
    """Run a search against a function that says how many repetitions of a group fail."""
    rng = random.Random(seed)
    search, plans = Localiser(problem), []
    while (plan := search.plan()) is not None:
        plans.append(plan)
        results = tuple(GroupResult(plan.reps, fails(group, rng)) for group in plan.groups)
        search.absorb(plan, results)
    return search, plans


def fleet(count: int, leaves: int = 0, **options: object) -> SearchProblem:
    names = tuple(f"gpu{i:04}" for i in range(count))
    cabling = tuple(f"l{i * leaves // count}" for i in range(count)) if leaves else ()
    return SearchProblem(names, cabling, **options)  # type: ignore[arg-type]  # keywords of Problem


def bad_nodes(*bad: int, chance: float = 1.0, noise: float = 0.0) -> Answer:
    def fails(group: Group, rng: random.Random) -> int:
        p = max(chance if set(bad) & set(group) else 0.0, noise)
        return sum(rng.random() < p for _ in range(8))

    return fails


def found(conclusion: Conclusion) -> set[tuple[FaultKind, tuple[str, ...]]]:
    return {(f.kind, f.members) for f in conclusion.findings if f.kind in FOUND}


@settings(max_examples=30)
@given(
    st.integers(2, 40),
    st.integers(0, 4),
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(1, 6)),
    st.floats(0.0, 0.4),
    st.integers(0, 2**16),
)
def test_every_round_can_be_run(
    count: int, leaves: int, span: int, cap: int | None, noise: float, seed: int
) -> None:
    """No node stands in two groups of a round, and no group is too small or one too many."""
    problem = fleet(
        count, leaves if leaves < count else 0, span=min(span, count), max_groups=cap, seed=seed,
        max_rounds=8,
    )  # fmt: skip
    _, plans = drive(problem, bad_nodes(0, noise=noise), seed)
    assert len(plans) <= 8
    for plan in plans:
        members = [node for group in plan.groups for node in group]
        assert len(members) == len(set(members))
        assert all(0 <= node < count for node in members)
        if plan.stage in (Stage.SCREEN, Stage.ISOLATE):
            assert all(len(group) >= max(2, problem.span) for group in plan.groups)
            assert cap is None or len(plan.groups) <= cap


@settings(max_examples=15)
@given(st.integers(3, 24), st.integers(0, 2**16), st.floats(0.3, 1.0))
def test_names_change_names_only(count: int, seed: int, chance: float) -> None:
    """Renaming the nodes renames the verdict and changes nothing else."""
    plain = fleet(count, seed=seed)
    named = SearchProblem(tuple(f"x{i * 7}" for i in range(count)), seed=seed)
    one, plans = drive(plain, bad_nodes(1, chance=chance), seed)
    other, other_plans = drive(named, bad_nodes(1, chance=chance), seed)
    assert plans == other_plans
    renamed = dict(zip(plain.nodes, named.nodes, strict=True))
    before, after = conclude(one), conclude(other)
    assert [tuple(renamed[m] for m in f.members) for f in before.findings] == [
        f.members for f in after.findings
    ]
    assert [f.posterior for f in before.findings] == [f.posterior for f in after.findings]


@settings(max_examples=15)
@given(st.integers(4, 40), st.integers(0, 2**16), st.floats(0.0, 0.5))
def test_a_clean_full_run_lowers_every_posterior(count: int, seed: int, noise: float) -> None:
    """When the whole fleet passes together, nobody becomes more suspicious."""
    search = Localiser(fleet(count, seed=seed))
    plan = search.plan()
    assert plan is not None
    rng = random.Random(seed)
    answer = bad_nodes(0, noise=noise)
    search.absorb(plan, tuple(GroupResult(8, answer(g, rng)) for g in plan.groups))
    before = search.suspicion().copy()
    whole = RoundPlan(2, Stage.FULL, 8, (tuple(range(count)),))
    search.absorb(whole, (GroupResult(8, 0),))
    assert np.all(search.suspicion() <= before + 1e-6)


@settings(max_examples=40)
@given(st.integers(2, 8), st.randoms(use_true_random=False))
def test_small_fleets_accuse_no_innocent(count: int, rng: random.Random) -> None:
    """With up to half of a small fleet bad, whoever is named is bad."""
    bad = rng.sample(range(count), rng.randint(0, count // 2))
    search, _ = drive(fleet(count, seed=rng.randrange(1000)), bad_nodes(*bad), rng.randrange(1000))
    named = {name for kind, members in found(conclude(search)) for name in members}
    assert named <= {f"gpu{v:04}" for v in bad}


def test_two_nodes_and_a_failing_pair_are_undecidable() -> None:
    """With two nodes nothing says which of them it is, and the answer says what would."""
    search, plans = drive(fleet(2), bad_nodes(0))
    (finding,) = conclude(search).findings
    assert finding.kind is FaultKind.UNDECIDABLE
    assert finding.members == ("gpu0000", "gpu0001")
    assert "need one more node" in finding.why
    assert len(plans) < 8


def test_deterministic_faults_take_two_rounds() -> None:
    """Pairs, then suspects with verified-good references: the floor for any method."""
    search, plans = drive(fleet(128, 8), bad_nodes(3, 64, 127))
    assert len(plans) == 2
    assert found(conclude(search)) == {(FaultKind.NODE, (f"gpu{v:04}",)) for v in (3, 64, 127)}


def test_a_dead_uplink_is_named_and_no_node_is() -> None:
    """Everything that crosses one leaf's uplink fails: the leaf is the verdict."""

    def fails(group: Group, rng: random.Random) -> int:
        inside = {v < 16 for v in group}
        return 8 if inside == {True, False} else 0

    search, plans = drive(fleet(128, 8), fails)
    assert found(conclude(search)) == {(FaultKind.LEAF, ("l0",))}
    assert len(plans) <= 3


def test_a_node_that_fails_only_at_scale_is_named() -> None:
    """Pairs pass, the full job fails: the joint engine names the node and the size."""
    search, plans = drive(fleet(64), lambda group, rng: 8 * (5 in group and len(group) >= 16))
    (finding,) = conclude(search).findings
    assert (finding.kind, finding.members) == (FaultKind.NODE, ("gpu0005",))
    assert finding.smallest_size > 2
    assert len(plans) <= 10


def test_two_nodes_that_only_fail_together_are_a_pair() -> None:
    """An interaction is called one, and neither node alone is accused."""
    search, _ = drive(fleet(48), lambda group, rng: 8 * ({7, 30} <= set(group)))
    assert found(conclude(search)) == {(FaultKind.PAIR, ("gpu0007", "gpu0030"))}


def test_a_clean_fleet_says_what_it_excludes() -> None:
    """Nothing found is a bound on what can still be there, not a promise."""
    search, _ = drive(fleet(32), lambda group, rng: 0)
    conclusion = conclude(search)
    assert [f.kind for f in conclusion.findings] == [FaultKind.NONE]
    assert conclusion.exclusion.clean_repetitions >= 16
    assert 0.0 < conclusion.exclusion.failure_probability < 0.3


def test_unmeasured_groups_clear_nobody() -> None:
    """Rounds without a measurement end undecided, never clean."""
    search = Localiser(fleet(8, max_rounds=3))
    while (plan := search.plan()) is not None:
        search.absorb(plan, tuple(GroupResult(8, None) for _ in plan.groups))
    (finding,) = conclude(search).findings
    assert finding.kind is FaultKind.UNDECIDABLE
    assert conclude(search).exclusion.clean_repetitions == 0


def test_a_prior_moves_the_odds() -> None:
    """What logs hold against one of two failing partners is believed until tests say more."""
    problem = SearchProblem(("a", "b"), prior={"a": 50.0})
    search, _ = drive(problem, bad_nodes(0))
    suspicion = search.suspicion()
    assert suspicion[0] > suspicion[1]
