"""What every node of a job has had for long is the site's; what one has, or all lately, is not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from brctl.evidence.job.past.shared_states import without_shared_states
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import StepHistory
from tests.evidence.job.past.test_outlived import JOB, against, status
from tests.evidence.job.test_cpu_waits import SLOWER, STEADY

NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)


def unplugged(node: str, minutes: int = 600, port: str = "pci:a1:00.1") -> Evidence:
    told = against("host.kernel.nic_unplugged", FaultClass.NETWORK_LINK, node=node)
    at = NOW - timedelta(minutes=minutes)
    return replace(told, subject=Subject(node, port), weight=Weight.HINTS, at=at)


EVERYWHERE = [unplugged(node) for node in JOB.nodes]


@pytest.mark.parametrize("history", [STEADY, StepHistory()])
def test_a_port_that_nobody_ever_plugged_in_is_no_lead(history: StepHistory) -> None:
    """A sound job had a LOW lead on every node's cable."""
    job = status(stalled=False, progress_age_s=0.1, history=history)
    found = without_shared_states(EVERYWHERE, job, NOW)
    assert {(item.weight, item.role) for item in found} == {(Weight.CONTEXT, Role.CONTEXT)}


def test_where_one_nodes_cable_is_out_it_is_a_lead() -> None:
    job = status(stalled=False, progress_age_s=0.1, history=STEADY)
    some = EVERYWHERE[1:]
    assert without_shared_states(some, job, NOW) == tuple(some)
    since_now = [*EVERYWHERE[1:], unplugged(JOB.nodes[0], minutes=1)]
    assert without_shared_states(since_now, job, NOW) == tuple(since_now)
    undated = [*EVERYWHERE[1:], replace(EVERYWHERE[0], at=None)]
    assert without_shared_states(undated, job, NOW) == tuple(undated)


def test_where_steps_stopped_or_became_slower_all_cables_may_be_why() -> None:
    for job in (
        status(stalled=True, progress_age_s=70.0),
        status(stalled=False, progress_age_s=0.1, history=SLOWER),
    ):
        assert without_shared_states(EVERYWHERE, job, NOW) == tuple(EVERYWHERE)


def test_one_cable_more_than_everywhere_is_a_lead() -> None:
    """Its node's spare port, as all have it, excused the port that is used."""
    job = status(stalled=False, progress_age_s=0.1, history=STEADY)
    used = unplugged(JOB.nodes[0], port="pci:17:00.0")
    *spare, last = without_shared_states([*EVERYWHERE, used], job, NOW)
    assert (last, {item.weight for item in spare}) == (used, {Weight.CONTEXT})


def test_spare_ports_of_other_addresses_are_shared_where_each_node_has_as_many() -> None:
    job = status(stalled=False, progress_age_s=0.1, history=STEADY)
    first = JOB.nodes[0]
    other = [unplugged(first, port="pci:17:00.1"), *EVERYWHERE[1:]]
    assert {i.weight for i in without_shared_states(other, job, NOW)} == {Weight.CONTEXT}
    two = [unplugged(first, port="pci:17:00.0"), *other]
    assert without_shared_states(two, job, NOW) == tuple(two)


def test_a_used_port_is_a_lead_where_every_other_node_has_a_spare_one() -> None:
    """Its node has as many unplugged as each other: one, the first of its adapter."""
    job = status(stalled=False, progress_age_s=0.1, history=STEADY)
    used = unplugged(JOB.nodes[0], port="pci:17:00.0")
    told = [used, *EVERYWHERE[1:]]
    assert without_shared_states(told, job, NOW) == tuple(told)
    single = [used, *(unplugged(node, port="pci:c1:00.0") for node in JOB.nodes[1:])]
    assert without_shared_states(single, job, NOW) == tuple(single)
    spare = [unplugged(node, port="pci:c1:00.0") for node in JOB.nodes]
    assert {i.weight for i in without_shared_states(spare, job, NOW)} == {Weight.CONTEXT}


def test_links_that_went_down_everywhere_had_been_up() -> None:
    """At an unknown pace nothing says that the job did without them from the beginning."""
    down = [replace(item, kind="host.kernel.nic_link_down") for item in EVERYWHERE]
    job = status(stalled=False, progress_age_s=0.1, history=StepHistory())
    assert without_shared_states(down, job, NOW) == tuple(down)
