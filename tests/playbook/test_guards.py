"""Guards refuse by number, name the line, and never count what is unknown as good."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.fault_catalogue import WRONG_RESULTS
from brctl.model.runs.playbook import GuardSpec, Json, Playbook
from brctl.model.runs.result import PastRun, RunState
from brctl.playbook.guard_facts import GuardFacts, Taken
from brctl.playbook.guards import (
    BUILT_IN,
    GUARDS,
    blast_limit,
    check_guards,
    guards_for,
    lock_keys,
)

NOW = datetime(2026, 7, 5, 12, tzinfo=UTC)
FLEET = tuple(f"n{i}" for i in range(1, 101))
FACTS = GuardFacts(now_at=NOW, run="R-9", fleet=FLEET, healthy=frozenset(FLEET))
SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")


def ask(kind: str, facts: GuardFacts, **parameters: Json) -> tuple[bool, str]:
    (result,) = check_guards([GuardSpec(kind, parameters, "guards.yaml:3")], facts)
    assert result.origin == "guards.yaml:3"
    return result.ok, result.sentence


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


@pytest.mark.parametrize(
    ("fleet", "limit"), [(8, 1), (99, 1), (100, 1), (450, 4), (600, 5), (10_000, 5)]
)
def test_the_built_in_limit_is_five_nodes_or_one_percent_but_never_none(
    fleet: int, limit: int
) -> None:
    """Rounded down; a lab of eight may still lose its one broken node."""
    assert blast_limit(BUILT_IN.parameters, fleet) == limit


def test_nodes_others_took_in_the_window_count() -> None:
    """Yesterday's do not, and neither does a node that this run takes anyway, twice."""
    taken = (
        Taken("n1", "dcops", ago(1)),
        Taken("n2", "brctl:R-1", ago(2)),
        Taken("n3", "R-0", ago(9)),
    )
    facts = replace(FACTS, nodes=("n2", "n7"), taken=taken)
    assert ask("blast_radius", facts, max_nodes=3, window="6h")[0]
    refused, sentence = ask("blast_radius", facts, max_nodes=2, window="6h")
    assert not refused
    assert "1 nodes taken in 6h00 + 2 now = 3 > 2 (taken: n1 by dcops)" in sentence


def test_a_run_that_takes_no_node_is_never_blocked_by_the_blast_radius() -> None:
    """Giving nodes back is always allowed."""
    taken = tuple(Taken(f"n{i}", "x", ago(1)) for i in range(50))
    assert ask("blast_radius", replace(FACTS, taken=taken), max_nodes=1)[0]


nodes = st.lists(st.sampled_from(FLEET), unique=True, max_size=20).map(tuple)


@given(
    kind=st.sampled_from(["blast_radius", "min_healthy"]),
    planned=nodes,
    more=st.sampled_from(FLEET),
    taken=nodes,
    healthy=st.frozensets(st.sampled_from(FLEET)),
    limit=st.integers(0, 20),
)
def test_a_guard_that_refuses_some_nodes_refuses_more(
    kind: str,
    planned: tuple[str, ...],
    more: str,
    taken: tuple[str, ...],
    healthy: frozenset[str],
    limit: int,
) -> None:
    """Adding a node never turns a no into a yes."""
    facts = replace(
        FACTS,
        nodes=planned,
        taken=tuple(Taken(node, "x", ago(1)) for node in taken),
        healthy=healthy,
    )
    larger = replace(facts, nodes=tuple(dict.fromkeys((*planned, more))))
    parameters: dict[str, Json] = {"max_nodes": limit, "percent": limit * 5}
    if not ask(kind, facts, **parameters)[0]:
        assert not ask(kind, larger, **parameters)[0]


def test_unknown_is_not_healthy() -> None:
    """A node that nobody could measure does not help to stay above the floor."""
    facts = replace(FACTS, nodes=("n1",), healthy=frozenset(FLEET[:96]))
    assert ask("min_healthy", facts, percent=95)[0]
    assert not ask("min_healthy", replace(facts, healthy=frozenset(FLEET[:95])), percent=95)[0]


def test_a_blind_view_is_refused() -> None:
    """Without a sweep nobody knows who is silent, and that is no reason to act."""
    assert ask("max_unknown", FACTS, percent=1) == (False, "no sweep says which nodes answer")
    assert ask("max_unknown", replace(FACTS, silent=frozenset({"n1"})), percent=1)[0]
    assert not ask("max_unknown", replace(FACTS, silent=frozenset({"n1", "n2"})), percent=1)[0]


@pytest.mark.parametrize(
    ("age_h", "still", "ok"),
    [(0.1, True, True), (0.1, None, True), (0.1, False, False), (0.6, True, False)],
)
def test_a_verdict_must_be_fresh_and_not_refuted(
    age_h: float, still: bool | None, ok: bool
) -> None:
    """A node that came back stops the swap; one that cannot be looked at does not."""
    facts = replace(FACTS, verdict="V-1", verdict_at=ago(age_h), still_true=still)
    assert ask("verdict", facts, max_age="30m", still_true=True)[0] is ok


@pytest.mark.parametrize(("goes_on", "ok"), [(True, False), (False, True), (None, True)])
def test_a_job_that_takes_steps_again_is_not_stopped_for_its_stall(
    goes_on: bool | None, ok: bool
) -> None:
    """Somebody mended it, or it mended itself; where nobody can tell, the verdict stands."""
    facts = replace(FACTS, verdict="V-1", verdict_at=ago(0.1), goes_on=goes_on)
    assert ask("verdict", facts, max_age="30m", still_stalled=True)[0] is ok


def test_flapping_is_refused_for_the_node_that_flaps() -> None:
    """Two runs took n1 today; a third is refused, for n2 it is not."""
    past = tuple(
        PastRun(
            run=f"R-{i}",
            playbook="p",
            taken=("n1",),
            job="demo",
            result=RunState.OK,
            exit_code=0,
            ended_at=ago(i),
        )
        for i in (1, 5, 30)
    )
    facts = replace(FACTS, named=("n1",), past_runs=past)
    assert not ask("cooldown", facts, per="node", at_most=2, window="24h")[0]
    assert ask("cooldown", facts, per="node", at_most=3, window="24h")[0]
    assert ask("cooldown", replace(facts, named=("n2",)), per="node", at_most=1, window="24h")[0]


def test_somebody_elses_cordon_is_left_alone() -> None:
    """Brctl lifts brctl's cordons, others' only when told to."""
    facts = replace(FACTS, cordon_owners={"n1": "brctl:R-1", "n2": "dcops"})
    assert ask("owner", facts, nodes=["n1"], cordoned_by=["brctl"])[0]
    assert not ask("owner", facts, nodes=["n1", "n2"], cordoned_by=["brctl"])[0]
    assert ask("owner", facts, nodes=["n2"], cordoned_by="anyone")[0]


def test_a_busy_node_is_not_idle_and_a_held_lock_is_named() -> None:
    """The refusal says which job and which run are in the way."""
    assert "n1 runs demo" in ask("idle", replace(FACTS, busy={"n1": "demo"}), nodes=["n1"])[1]
    assert (
        "job:demo by R-3" in ask("lock", replace(FACTS, held={"job:demo": "R-3"}), keys=["job"])[1]
    )


def test_missing_standbys_are_counted() -> None:
    """Two needed and one ready is a no."""
    assert not ask("standby", replace(FACTS, standbys=("s1",)), at_least=2)[0]
    assert ask("standby", replace(FACTS, standbys=("s1", "s2")), at_least=2)[0]


def test_idle_nodes_count_for_the_shortfall_and_are_named() -> None:
    """Only as many as are missing, and never where warm standbys are asked for."""
    facts = replace(FACTS, standbys=("s1",), spares=("w1", "w2"), warmed_at={"s1": ago(0.1)})
    allowed, sentence = ask("standby", facts, at_least=2)
    assert allowed
    assert sentence == "1 standbys ready, 2 needed; idle w1 for the shortfall"
    assert not ask("standby", facts, at_least=4)[0]
    assert not ask("standby", facts, at_least=2, warmed_within="15m")[0]


def test_a_cold_standby_does_not_count_where_warm_ones_are_wanted() -> None:
    """Never warmed and warmed too long ago are the same."""
    facts = replace(FACTS, standbys=("s1", "s2", "s3"), warmed_at={"s1": ago(0.1), "s2": ago(3)})
    assert ask("standby", facts, at_least=1, warmed_within="15m")[0]
    assert not ask("standby", facts, at_least=2, warmed_within="15m")[0]


def test_site_lines_add_to_the_playbooks_and_the_built_in_fills_the_gap() -> None:
    """Every line that applies is asked, so the strictest decides."""
    site = GuardSpec("blast_radius", {"max_nodes": 2}, "/etc/brctl/guards.yaml:3")
    kinds = [spec.origin for spec in guards_for(SWAP, [site]) if spec.kind == "blast_radius"]
    assert kinds[-1] == "/etc/brctl/guards.yaml:3"
    assert "built in" not in kinds
    assert guards_for(SWAP, [])[-1] is BUILT_IN


def test_a_line_for_one_playbook_stands_in_for_the_general_one() -> None:
    """A playbook can be given its own limit without loosening it for the others."""
    general = GuardSpec("blast_radius", {"max_nodes": 2}, "g.yaml:1")
    special = GuardSpec("blast_radius", {"max_nodes": 8, "playbook": SWAP.name}, "g.yaml:2")
    other_file = GuardSpec("blast_radius", {"max_nodes": 3}, "etc.yaml:1")
    chosen = guards_for(SWAP, [general, special, other_file])
    assert [s.origin for s in chosen[len(SWAP.guards) :]] == ["g.yaml:2", "etc.yaml:1"]


def test_a_run_locks_its_job_and_its_nodes() -> None:
    """The inputs its lock guard lists become leases."""
    keys = lock_keys(SWAP, {"job": "demo", "suspects": ["n1", "n2"]})
    assert keys == ("job:demo", "node:n1", "node:n2")


@pytest.mark.parametrize("kind", sorted(GUARDS))
def test_every_guard_answers_with_bare_facts(kind: str) -> None:
    """No guard needs a parameter to give a sentence."""
    assert ask(kind, FACTS)[1]


def test_a_rack_or_leaf_keeps_its_own_floor() -> None:
    """The fleet may have plenty while one rack goes dark."""
    racks = {node: f"r{i // 10}" for i, node in enumerate(FLEET)}
    facts = replace(FACTS, nodes=("n1", "n2"), racks=racks, leaves={"n1": "L1"})
    assert ask("min_healthy", facts, percent=95)[0]
    assert ask("min_healthy", facts, scope="rack", percent=80)[0]
    ok, sentence = ask("min_healthy", facts, scope="rack", percent=90)
    assert not ok
    assert sentence == "8 of 10 nodes of rack r0 stay healthy, 80.0 %; at least 90 %"
    assert ask("min_healthy", facts, scope="leaf", percent=1) == (
        False,
        "nobody knows the leaf of n2",
    )


def test_somebody_elses_cordon_is_passed_over_where_nodes_go_one_by_one() -> None:
    """With `skip_node` the others go on; without `for_each` there is nothing to pass over."""
    facts = replace(FACTS, named=("n1", "n2"), cordon_owners={"n1": "dcops", "n2": "brctl:R-1"})
    spec = GuardSpec("owner", {"cordoned_by": ["brctl"], "action": "skip_node"}, "g.yaml:1")
    assert not check_guards([spec], facts)[0].ok
    (result,) = check_guards([spec], replace(facts, per_node=True))
    assert (result.ok, result.skips) == (True, ("n1",))


def test_a_node_that_computed_wrongly_does_not_come_back_by_a_burn_in_alone() -> None:
    """Only who says that it was repaired brings it back; `for_each` goes on with the others."""
    reasons = {"n1": f"V-7 {WRONG_RESULTS}", "n2": "V-8 a GPU fell off the bus"}
    facts = replace(FACTS, named=("n1", "n2"), cordon_reasons=reasons)
    refused, sentence = ask("corruption", facts, nodes=["n1", "n2"])
    assert not refused
    assert "n1" in sentence
    assert "n2" not in sentence
    assert ask("corruption", facts, nodes=["n2"])[0]
    assert ask("corruption", facts, nodes=["n1", "n2"], repaired=["n1"])[0]
    spec = GuardSpec("corruption", {"nodes": ["n1", "n2"], "action": "skip_node"}, "g.yaml:1")
    (result,) = check_guards([spec], replace(facts, per_node=True))
    assert (result.ok, result.skips) == (True, ("n1",))


def test_a_burn_in_that_found_wrong_results_counts_as_the_reason_of_a_cordon_does() -> None:
    """The node was cordoned for another reason before, and a cordon keeps its first one."""
    facts = replace(FACTS, computed_wrongly=frozenset({"n1"}), cordon_reasons={"n1": "V-8 Xid 79"})
    assert not ask("corruption", facts, nodes=["n1"])[0]
    assert ask("corruption", facts, nodes=["n1"], repaired=["n1"])[0]


def test_whatever_gives_nodes_back_asks_for_the_repair() -> None:
    """Every shipped playbook that lifts cordons has the line, and the input that answers it."""
    shipped = map(load_playbook, sorted(shipped_dir("playbooks").glob("*.yaml")))
    lifting = [p for p in shipped if any(step.uses == "node.uncordon" for step in p.steps)]
    asked = {p.name for p in lifting if "repaired" in p.inputs and _asks_for_repair(p)}
    assert asked == {p.name for p in lifting} >= {"reset-gpu", "return-to-service", "uncordon"}


def _asks_for_repair(playbook: Playbook) -> bool:
    (line,) = (guard for guard in playbook.guards if guard.kind == "corruption")
    return line.parameters["repaired"] == "$(inputs.repaired)"


@pytest.mark.parametrize(
    ("name", "step", "marks"),
    [
        ("locate-corruption", "cordon", "$(steps.locate.out.reason)"),
        ("replay", "cordon", "$(steps.replay.out.reason)"),
        ("stop-time-checks", "cordon_wrong", "$(steps.checks.out.wrong_reason)"),
        ("swap-and-resume", "cordon", "$(verdict.title)"),
    ],
)
def test_a_cordon_for_wrong_results_says_so(name: str, step: str, marks: str) -> None:
    """The verbs give the words that the guard reads; tests/actions/test_wrong_results.py."""
    playbook = load_playbook(shipped_dir("playbooks") / f"{name}.yaml")
    (cordon,) = (each for each in playbook.steps if each.id == step)
    assert cordon.uses == "node.cordon"
    assert marks in str(cordon.arguments["reason"])
