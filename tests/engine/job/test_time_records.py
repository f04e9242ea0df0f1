"""What a run tells of a job's time: when its ranks were stopped, and when they were started."""

from dataclasses import replace
from datetime import timedelta

import pytest

from brctl.engine.job.time_records import incident_of, suspected_us
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_time import US, moment_of
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Arguments
from brctl.model.watch.state import WatchRecord
from tests.engine.incidents.test_node_past import ran
from tests.fakes.nodes import NOW
from tests.fakes.watching import a_verdict


def did(second: int, step: str, *, ok: bool = True) -> Event:
    fields: Arguments = {"step": step, "ok": ok}
    return Event(second, EventType.STEP_RESULT, "R-0001", NOW + timedelta(seconds=second), fields)


def test_ranks_are_started_and_stopped_when_the_steps_of_those_verbs_are_done() -> None:
    """Steps are named by their id, as in the journal; one that failed started nothing."""
    events = (did(3, "stop"), did(9, "restart"), did(12, "prove"), did(20, "restart", ok=False))
    run = replace(ran("swap-and-resume", "llm"), events=events)
    found = incident_of(a_verdict("V-1", ("n1",), "llm"), run, None)
    assert found.stopped_us is not None
    assert found.started_us is not None
    assert moment_of(found.stopped_us) == NOW + timedelta(seconds=3)
    assert found.started_us - found.stopped_us == 6 * US
    assert (found.run, found.nodes) == ("R-0001", ("n1",))


def test_numbers_that_are_none_spoil_from_the_first_such_step_on() -> None:
    nan = replace(a_verdict("V-2", ("n1",), "llm"), fault=FaultClass.NUMERIC_NAN, job_step=120)
    assert incident_of(nan, None, None).spoilt_step == 120
    assert incident_of(a_verdict("V-1", ("n1",), "llm"), None, None).spoilt_step is None


def a_record(seq: int, kind: str, **fields: object) -> WatchRecord:
    return WatchRecord(seq, NOW + timedelta(seconds=seq), kind, fields)


@pytest.mark.parametrize("told", [{"subject": "n1"}, {}])
def test_detection_begins_with_the_suspicion_of_this_node_and_of_no_other(
    told: dict[str, object],
) -> None:
    """Another node is suspected by the same rule in between; old records tell no subject."""
    records = [
        a_record(1, "suspicion", rule="gpu", subject="n1"),
        a_record(2, "suspicion", rule="gpu", subject="n7"),
        a_record(3, "suspicion", rule="network", subject="n1"),
        a_record(4, "verdict", rule="gpu", verdict="V-1", **told),
    ]
    verdict = a_verdict("V-1", ("n1",), "llm")
    found = suspected_us(verdict, records)
    assert found is not None
    assert moment_of(found) == records[0].at
    assert suspected_us(verdict, records[1:]) is None, "the suspicion itself was not recorded"
