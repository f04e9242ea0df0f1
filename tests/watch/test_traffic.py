"""RDMA silence: the sign of a stall where no step is told, and of nothing else."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from brctl.library.checks import usable_checks
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus, Value
from brctl.watch.answers import FleetAnswers
from brctl.watch.traffic import RULE
from tests.fakes.nodes import NOW
from tests.fakes.watched_world import JOB
from tests.fakes.watching import measured

BUSY, IDLE = 10**9, 1000


@cache
def shipped() -> dict[str, Check]:
    return dict(usable_checks()[0])


class Fleet:
    """Two nodes of a job whose ranks live and tell no step."""

    def __init__(self) -> None:
        self.answers = FleetAnswers(shipped())
        self.words, self.seconds = 10**12, 0.0

    def passes(
        self, words: int, seconds: float = 60.0, rank: Mapping[str, Value] | None = None
    ) -> bool:
        """So much is sent in so many seconds; whether silence is suspected then."""
        self.words, self.seconds = self.words + words, self.seconds + seconds
        for number, node in enumerate(JOB.nodes):
            values: dict[str, Value] = {"job__rank__alive": True, **(rank or {})}
            ranks = measured("job.ranks", f"rank:{number}", **values)
            fresh = {"job.ranks": ranks, "fabric.ibport": self.port()}
            self.answers.take(node, fresh, {30.0: 1}, NOW, {})
        status = self.answers.job_status(JOB, ())
        seen, looked = self.answers.job_sightings(status, self.seconds)
        assert (RULE, JOB.name) in looked
        return RULE in {sighting.rule for sighting in seen}

    def port(self) -> CheckResult:
        row = Measurement("fabric.ibport.port_xmit_data", "nic:mlx5_0", self.words)
        return CheckResult("fabric.ibport", ProbeStatus.MEASURED, (row,))


def test_ten_minutes_without_traffic_after_traffic_are_suspected() -> None:
    """The subnet manager's own packets are no traffic."""
    fleet = Fleet()
    assert not fleet.passes(0)
    assert not fleet.passes(BUSY)
    assert [fleet.passes(IDLE) for _ in range(10)] == [False] * 9 + [True]
    assert not fleet.passes(BUSY)


def test_a_job_that_never_used_rdma_is_not_silent() -> None:
    fleet = Fleet()
    assert not any(fleet.passes(IDLE) for _ in range(60))


def test_a_job_whose_steps_go_on_or_that_evaluates_is_not_silent() -> None:
    steps: dict[str, Value] = {"job__rank__step": 7, "job__rank__progress_age_s": 0.2}
    evaluates: dict[str, Value] = {
        "job__rank__phase": "evaluation", "job__rank__progress_age_s": 900.0,
    }  # fmt: skip
    for told in (steps, evaluates):
        fleet = Fleet()
        assert not fleet.passes(0)
        assert not fleet.passes(BUSY)
        assert not any(fleet.passes(0, rank=told) for _ in range(60))


def test_a_node_whose_counters_are_not_told_leaves_it_unknown() -> None:
    fleet = Fleet()
    fleet.passes(0)
    fleet.passes(BUSY)
    port = replace(fleet.port(), measurements=())
    fleet.answers.take(JOB.nodes[0], {"fabric.ibport": port}, {30.0: 2}, NOW, {})
    status = fleet.answers.job_status(JOB, ())
    _, looked = fleet.answers.job_sightings(status, fleet.seconds + 3600.0)
    assert (RULE, JOB.name) not in looked


def test_counters_that_begin_anew_are_no_silence() -> None:
    fleet = Fleet()
    fleet.passes(0)
    fleet.passes(BUSY)
    for _ in range(5):
        fleet.passes(0)
    fleet.words = 0
    assert [fleet.passes(0) for _ in range(11)] == [False] * 10 + [True]


def test_nodes_that_tell_one_after_another_are_read_over_a_whole_minute() -> None:
    """Between two ticks only some counters are new: no rate is reckoned from that."""
    fleet = Fleet()
    fleet.passes(0)
    fleet.passes(BUSY)
    assert not any(fleet.passes(IDLE, seconds=2.0) for _ in range(299))
    assert any(fleet.passes(0, seconds=2.0) for _ in range(31))
