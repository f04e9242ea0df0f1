"""A site's own incidents as a trace and as a fleet file."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.model.fault import FaultClass
from brctl.simulate.fleet_file import load_fleet
from brctl.simulate.history import SYMPTOM_OF, fleet_text, site_history, trace_text
from brctl.simulate.recorded import load_recorded
from brctl.simulate.symptoms import SYMPTOMS, Cause
from tests.fakes.run_context import example_verdict
from tests.simulate.fleets import MEANS

NOW = datetime(2026, 3, 14, tzinfo=UTC)
SPAN = timedelta(days=90)


def stored(
    days_ago: float, fault: FaultClass, state: VerdictState = VerdictState.ACTED_ON,
    probability: float = 0.9,
) -> StoredVerdict:  # fmt: skip
    verdict = replace(
        example_verdict(), fault=fault, decided_at=NOW - timedelta(days=days_ago),
        probability=probability,
    )  # fmt: skip
    return StoredVerdict(verdict, state)


PAST = (
    stored(100, FaultClass.GPU_LOST),
    stored(40, FaultClass.NO_FAULT),
    stored(30, FaultClass.GPU_MEMORY_ECC),
    stored(30, FaultClass.USER_CODE, probability=0.2),
    stored(20, FaultClass.HANG_MISMATCH, VerdictState.DISMISSED),
    stored(10, FaultClass.USER_CODE, VerdictState.CONFIRMED),
)
JOB = PAST[0].verdict.job


def test_acted_on_within_the_span_counts_once_a_look() -> None:
    """Time counts from the first verdict there is, whatever became of it."""
    found = site_history(PAST, JOB, 4, NOW, SPAN)
    assert [stop.symptom for stop in found.stops] == ["gpu-memory", "cuda-error"]
    assert (found.days, found.left_out) == (40.0, 1)
    rate, low, high = found.per_1000_node_days
    assert rate == pytest.approx(1_000 * 2 / (4 * 40))
    assert low < rate < high
    assert not site_history(PAST, "another", 4, NOW, SPAN).stops


def test_its_trace_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(trace_text(site_history(PAST, JOB, 4, NOW, SPAN)), encoding="utf-8")
    first, second = load_recorded(path).faults
    assert (first.symptom, first.cause, first.slots) == ("gpu-memory", Cause.MACHINE, (0,))
    assert second.cause is Cause.CODE
    assert second.at_us - first.at_us == 20 * 24 * 3_600_000_000


def test_its_fleet_has_its_rate_and_for_what_never_came_the_usual_share(tmp_path: Path) -> None:
    found = site_history(PAST, JOB, 4, NOW, SPAN)
    path = tmp_path / "mine.yaml"
    path.write_text(fleet_text(found, 8, MEANS), encoding="utf-8")
    fleet = load_fleet(path)
    assert fleet.per_1000_node_days == pytest.approx(12.5)
    assert fleet.shares["hang"] == pytest.approx(MEANS.shares["hang"], rel=0.01)
    assert fleet.shares["gpu-memory"] == pytest.approx(fleet.shares["cuda-error"])
    assert any(
        "hang:" in line and "0 seen: as paper-means" in line
        for line in path.read_text().splitlines()
    )
    assert fleet.times == MEANS.times


def test_every_class_that_names_a_cause_has_a_symptom() -> None:
    assert set(FaultClass) - set(SYMPTOM_OF) == {FaultClass.NO_FAULT, FaultClass.UNKNOWN}
    assert {symptom for symptom, _ in SYMPTOM_OF.values()} <= set(SYMPTOMS)
