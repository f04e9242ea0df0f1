"""`lab demo --watch`: what it makes of a watcher's record and a run's journal; no lab is needed."""

import asyncio
import signal
from datetime import datetime, timedelta

import pytest

from brctl.lab import watched_demo
from brctl.lab.watched_demo import moments, record_line
from brctl.model.demo import DemoMoment
from brctl.model.runs.event import Event, EventType
from brctl.model.watch.state import WatchRecord
from tests.fakes.nodes import NOW


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


RECORDS = [
    WatchRecord(1, after(0.8), "suspicion", {"rule": "gpu-lost", "subject": "n4", "text": "lost"}),
    WatchRecord(2, after(2.0), "suspicion", {"subject": "lab-train", "text": "4 ranks ended"}),
    WatchRecord(3, after(3.5), "verdict", {"verdict": "V-1", "title": "a GPU is off the bus"}),
    WatchRecord(4, after(3.6), "decision", {"verdict": "V-1", "mode": "act"}),
]
EVENTS = [
    Event(1, EventType.RUN_STARTED, "R-0001", after(4.0), {"playbook": "swap-and-resume"}),
    Event(2, EventType.STEP_RESULT, "R-0001", after(4.5), {"step": "restart", "ok": False}),
    Event(3, EventType.STEP_RESULT, "R-0001", after(5.0), {"step": "stop", "ok": True}),
    Event(4, EventType.STEP_RESULT, "R-0001", after(6.0), {"step": "restart", "ok": True}),
]


def test_each_moment_is_the_first_of_its_kind_after_the_fault() -> None:
    """Steps that the job took before its ranks started anew are not the new one."""
    steps_at = [after(s).timestamp() for s in (0.2, 5.5, 6.8, 7.0)]
    assert moments(NOW, RECORDS, EVENTS, steps_at) == (
        DemoMoment("fault", 0.0),
        DemoMoment("suspicion", 0.8),
        DemoMoment("verdict", 3.5),
        DemoMoment("decision", 3.6),
        DemoMoment("fix started", 4.0),
        DemoMoment("job stopped", 5.0),
        DemoMoment("ranks started", 6.0),
        DemoMoment("new step", 6.8),
    )


def test_what_never_came_is_left_out() -> None:
    """No run: a step is no new step while nothing was started."""
    told = moments(NOW, RECORDS[:1], [], [after(9.0).timestamp()])
    assert [moment.what for moment in told] == ["fault", "suspicion"]


def test_a_line_of_the_record_says_what_about_whom() -> None:
    assert record_line(RECORDS[0]) == "suspicion n4 lost"
    assert record_line(RECORDS[2]) == "verdict V-1 a GPU is off the bus"
    assert record_line(RECORDS[3]) == "decision V-1 act"


async def test_a_watcher_that_does_not_end_when_asked_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may act: it must not outlive the demo."""
    monkeypatch.setattr(watched_demo, "ENDS_WITHIN_S", 0.01)
    watcher = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", "trap '' TERM; echo ready; exec sleep 3600", stdout=asyncio.subprocess.PIPE
    )
    assert watcher.stdout is not None
    assert await watcher.stdout.readline() == b"ready\n"
    await watched_demo._end(watcher)
    assert watcher.returncode == -signal.SIGKILL
