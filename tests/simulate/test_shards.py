"""Parts of a simulation: what decides their runs is one digest."""

from dataclasses import replace
from pathlib import Path

import pytest

from brctl.simulate.compare import Request, choose_policies, simulated
from brctl.simulate.decisions import rules_of
from brctl.simulate.shards import conditions_sha256, merged, part_of
from tests.simulate.fleets import MEANS

REQUEST = Request(MEANS, choose_policies(["site"]), 7, 3, rules=rules_of())
GUARDS = "apiVersion: brctl.dev/v1\nkind: Guards\nblast_radius: {max_nodes: 3, window: 6h}\n"


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, fleet=replace(MEANS, standbys=12)),
        replace(REQUEST, policies=choose_policies(["site,oracle"])),
        replace(REQUEST, rules=None),
    ],
)
def test_another_fleet_policy_or_rule_is_another_digest(other: Request) -> None:
    assert conditions_sha256(other) != conditions_sha256(REQUEST)


def test_guards_count_by_their_lines_and_not_by_their_file(tmp_path: Path) -> None:
    found = {}
    for name, text in (("a", GUARDS), ("b", GUARDS), ("c", GUARDS.replace("3", "5"))):
        path = tmp_path / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        found[name] = conditions_sha256(replace(REQUEST, rules=rules_of(guard_files=[path])))
    assert found["a"] == found["b"] != found["c"]


def test_a_policy_without_a_run_of_some_seed_is_said() -> None:
    """Its mean is over other faults than that of the others."""
    request = replace(REQUEST, policies=choose_policies(["requeue,oracle"]), rules=None)
    runs = simulated(request, request.seeds(), lambda _: None)
    part = part_of(request, [r for r in runs if (r.policy, r.seed) != ("oracle", 8)])
    found = merged([part])
    assert found.unfinished == ("'oracle' has no run of seed 8",)
    assert [score.runs for score in found.scores] == [3, 2]


def test_cores_fleet_file_and_order_of_policies_are_no_conditions() -> None:
    fleet = replace(MEANS, origin="elsewhere.yaml")
    one = replace(REQUEST, policies=choose_policies(["site,oracle"]))
    other = replace(one, fleet=fleet, policies=choose_policies(["oracle,site"]), workers=9)
    assert conditions_sha256(other) == conditions_sha256(one)
