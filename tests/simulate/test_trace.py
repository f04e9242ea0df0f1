"""Faults drawn once: the published mix, and nothing that a policy does moves one."""

from dataclasses import replace
from math import sqrt

from brctl.simulate.symptoms import SYMPTOMS, Cause, SymptomFamily, shares
from brctl.simulate.trace import counted, draw
from tests.simulate.fleets import MEANS, simulated

PLATFORM = shares(
    {f: float(sum(s.count for s in SYMPTOMS.values() if s.family is f)) for f in SymptomFamily}
)
INCIDENTS = 55_365


def test_symptoms_come_as_often_as_on_the_papers_platform() -> None:
    """Table 1, within three standard deviations of 55,365 draws."""
    fleet = replace(MEANS, shares=PLATFORM, per_1000_node_days=1_000 * INCIDENTS / 1_200 / 90)
    found = counted(draw(fleet, 7, 90.0))
    total = sum(found.values())
    assert abs(total - INCIDENTS) < 4 * sqrt(INCIDENTS)
    for name, share in PLATFORM.items():
        assert abs(found[name] / total - share) <= 3 * sqrt(share * (1 - share) / total) + 1e-9, (
            name
        )


def test_the_table_sums_to_the_incidents_of_the_paper() -> None:
    assert sum(row.count for row in SYMPTOMS.values()) == INCIDENTS
    assert round(100 * PLATFORM["cuda-error"], 2) == 36.07


def test_the_same_seed_gives_the_same_faults_and_another_gives_others() -> None:
    assert draw(MEANS, 7, 90.0) == draw(MEANS, 7, 90.0)
    assert draw(MEANS, 7, 90.0) != draw(MEANS, 8, 90.0)


def test_what_the_job_does_itself_is_on_no_node() -> None:
    trace = draw(MEANS, 7, 90.0)
    assert {fault.cause for fault in trace.of_job} == {Cause.CODE, Cause.PERSON}
    assert all(fault.nodes == () for fault in trace.of_job)
    assert all(len(fault.nodes) == 1 for fault in trace.of_nodes)


def test_bad_nodes_have_their_published_share_of_the_failures() -> None:
    """Meta: 1.2 % of the nodes have 13 % of the failures; the rate counts them."""
    fleet = replace(MEANS, bad_share=0.012, bad_times=12.3, per_1000_node_days=100.0)
    faults = draw(fleet, 7, 90.0).of_nodes
    by_node: dict[int, int] = {}
    for fault in faults:
        by_node[fault.nodes[0]] = by_node.get(fault.nodes[0], 0) + 1
    worst = sum(sorted(by_node.values(), reverse=True)[:14])
    assert 0.11 < worst / len(faults) < 0.15


def test_a_policy_that_runs_beside_another_moves_nothing() -> None:
    alone = simulated(MEANS, "standby", 7)
    simulated(replace(MEANS, restart_fails=0.5), "requeue", 7)
    assert simulated(MEANS, "standby", 7) == alone
