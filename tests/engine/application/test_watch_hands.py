"""What a watcher takes from the rest of brctl before it decides."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.engine.application.watching.hands import dismissed_at, paged, start_program
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.notify.notifier import Delivery, DeliveryState
from tests.fakes.nodes import NOW
from tests.fakes.watching import a_verdict


def test_a_node_is_left_alone_from_when_a_person_dismissed_an_old_verdict() -> None:
    """Decided on days ago, dismissed just now: the quiet time begins now."""
    verdict = a_verdict("V-1", ("n1",), "llm")
    later = NOW + timedelta(days=3)
    stored = StoredVerdict(verdict, VerdictState.DISMISSED, by="kim", at=later)
    assert dismissed_at([stored], later - timedelta(hours=1)) == {"n1": later}


def test_verdicts_nobody_dismissed_keep_no_watcher_away() -> None:
    verdict = a_verdict("V-1", ("n1",), "llm")
    stored = StoredVerdict(verdict, VerdictState.CONFIRMED, by="kim", at=NOW)
    assert dismissed_at([stored], NOW - timedelta(hours=1)) == {}


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ((), False),
        ((DeliveryState.FAILED, DeliveryState.FAILED), False),
        ((DeliveryState.UNASKED,), False),
        ((DeliveryState.FAILED, DeliveryState.SENT), True),
        ((DeliveryState.KNOWN,), True),
    ],
)
def test_people_are_told_where_a_sink_took_the_page(
    states: tuple[DeliveryState, ...], told: bool
) -> None:
    deliveries = [Delivery(f"sink{n}", state, "why") for n, state in enumerate(states)]
    attempt = paged("brctl fix V-1", deliveries)
    assert attempt.done is told
    assert all(f"{d.sink} {d.state} (why)" in attempt.text for d in deliveries)


def test_a_program_that_cannot_be_started_is_no_started_fix(tmp_path: Path) -> None:
    attempt = asyncio.run(start_program([str(tmp_path / "absent")]))
    assert not attempt.done
    assert attempt.text.startswith("cannot be started:")
