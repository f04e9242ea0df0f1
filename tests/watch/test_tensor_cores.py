"""Idle tensor cores: the sign of a stall, and of nothing that a job does on purpose."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from brctl.library.checks import usable_checks
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus, Value
from brctl.watch.answers import FleetAnswers
from brctl.watch.tensor_cores import LEARNED_LOOKS, MEASUREMENT, RULE
from tests.fakes.nodes import NOW
from tests.fakes.watched_world import JOB
from tests.fakes.watching import measured

BUSY, IDLE, LOOK_S = 40.0, 3.9, 30.0
STANDS: Mapping[str, Value] = {}
EVALUATES: Mapping[str, Value] = {
    "job__rank__phase": "evaluation", "job__rank__progress_age_s": 900.0,
}  # fmt: skip


@cache
def shipped() -> dict[str, Check]:
    return dict(usable_checks()[0])


def clocks(*pcts: Value) -> CheckResult:
    rows = tuple(Measurement(MEASUREMENT, f"gpu:{number}", pct) for number, pct in enumerate(pcts))
    return CheckResult("gpu.clocks", ProbeStatus.MEASURED, rows)


class Fleet:
    """Two nodes of a job whose ranks live and tell no step, but for what a test says."""

    def __init__(self) -> None:
        self.answers = FleetAnswers(shipped())
        self.job = JOB
        self.seconds, self.look, self.step = 0.0, 0, 0

    def told(self, node: str, result: CheckResult, rank: Mapping[str, Value]) -> None:
        number = JOB.nodes.index(node)
        ranks = measured("job.ranks", f"rank:{number}", **{"job__rank__alive": True, **rank})
        fresh = {"job.ranks": ranks, "gpu.clocks": result}
        self.answers.take(node, fresh, {30.0: self.look}, NOW, {"gpu.clocks": self.look})

    def reads(self, *pcts: Value, rank: Mapping[str, Value] = STANDS) -> bool:
        """The same on both nodes, half a minute later; whether idle cores are suspected then."""
        self.look, self.seconds = self.look + 1, self.seconds + LOOK_S
        for node in JOB.nodes:
            self.told(node, clocks(*pcts), rank)
        return self.suspected()

    def suspected(self) -> bool:
        seen, self.looked = self.answers.job_sightings(
            self.answers.job_status(self.job, ()), self.seconds
        )
        return RULE in {sighting.rule for sighting in seen}

    def steps(self) -> Mapping[str, Value]:
        self.step += 1
        return {"job__rank__step": self.step, "job__rank__progress_age_s": 0.2}

    def learns(self) -> "Fleet":
        assert not any(self.reads(BUSY, BUSY) for _ in range(LEARNED_LOOKS))
        return self


def test_a_minute_below_a_tenth_of_the_jobs_own_median_is_suspected_until_it_works() -> None:
    fleet = Fleet().learns()
    assert [fleet.reads(IDLE, IDLE) for _ in range(4)] == [False, False, True, True]
    assert not fleet.reads(BUSY, BUSY)
    assert (RULE, JOB.name) in fleet.looked


def test_a_tenth_of_its_usual_activity_is_still_work() -> None:
    fleet = Fleet().learns()
    assert not any(fleet.reads(BUSY / 10, BUSY / 10) for _ in range(20))


def test_one_gpu_that_idles_is_not_the_job() -> None:
    """The median over the job's GPUs counts; what one of them does, the other checks tell."""
    fleet = Fleet().learns()
    assert not any(fleet.reads(BUSY, BUSY, 0.0) for _ in range(20))


def test_a_job_without_a_history_or_without_tensor_cores_is_not_suspected() -> None:
    young, other = Fleet(), Fleet()
    assert not any(young.reads(IDLE if n > 2 else BUSY) for n in range(LEARNED_LOOKS))
    assert not any(other.reads(0.5 if n < 20 else 0.0) for n in range(60))


def test_a_job_that_evaluates_or_goes_on_with_its_steps_is_not_suspected() -> None:
    evaluating, stepping = Fleet().learns(), Fleet().learns()
    assert not any(evaluating.reads(0.0, rank=EVALUATES) for _ in range(60))
    assert not any(stepping.reads(0.0, rank=stepping.steps()) for _ in range(60))


def test_an_evaluation_is_no_part_of_the_minute_nor_of_the_jobs_usual_activity() -> None:
    fleet = Fleet().learns()
    assert not any(fleet.reads(0.0, rank=EVALUATES) for _ in range(60))
    assert [fleet.reads(IDLE) for _ in range(3)] == [False, False, True]


def test_a_lull_as_long_as_those_before_is_the_jobs_way_to_work() -> None:
    """It was suspected once; then only one twice as long is."""
    fleet = Fleet().learns()
    assert [fleet.reads(IDLE) for _ in range(5)][-1]
    fleet.reads(BUSY)
    assert [fleet.reads(IDLE) for _ in range(9)] == [False] * 8 + [True]


def test_a_long_stall_makes_the_next_one_known_within_ten_minutes() -> None:
    fleet = Fleet().learns()
    for _ in range(200):
        fleet.reads(IDLE)
    fleet.reads(BUSY)
    assert [fleet.reads(IDLE) for _ in range(21)] == [False] * 20 + [True]


@pytest.mark.parametrize("pct", [None, True, "0", -1.0, float("nan"), 1e9])
def test_what_a_node_does_not_tell_is_no_zero(pct: Value | None) -> None:
    """Where one node has no reading, or none that is a share, nothing is concluded."""
    fleet = Fleet().learns()
    for _ in range(5):
        fleet.look, fleet.seconds = fleet.look + 1, fleet.seconds + LOOK_S
        fleet.told(JOB.nodes[0], clocks(IDLE), STANDS)
        fleet.told(JOB.nodes[1], clocks(*(() if pct is None else (pct,))), STANDS)
        assert not fleet.suspected()
        assert (RULE, JOB.name) not in fleet.looked


def test_an_answer_that_nobody_renews_ages_into_no_suspicion() -> None:
    """A look that hangs on one node tells nothing of the minutes since."""
    fleet = Fleet().learns()
    fleet.reads(IDLE)
    for _ in range(20):
        fleet.look, fleet.seconds = fleet.look + 1, fleet.seconds + LOOK_S
        fleet.told(JOB.nodes[0], clocks(IDLE), STANDS)
        assert not fleet.suspected()


def test_a_job_on_other_nodes_is_learned_anew() -> None:
    fleet = Fleet().learns()
    fleet.job = replace(JOB, nodes=tuple(reversed(JOB.nodes)))
    assert not any(fleet.reads(IDLE) for _ in range(20))
