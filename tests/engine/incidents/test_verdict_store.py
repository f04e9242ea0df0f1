"""One damaged verdict stops nothing: it is set aside, said, and the others are read."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brctl.engine.incidents.verdict_store import (
    StoredVerdict,
    VerdictState,
    close_acted_on,
    current,
    load,
    load_all,
    open_verdicts,
    save,
    save_new,
    the_one,
    to_read,
)
from brctl.model.fault import FaultClass
from brctl.verdict.decide import DecisionContext, decide
from tests.fakes.run_context import example_verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("content", [b"", b'{"verdict": {"id": "V-', b"[]", b"\xff"])
def test_a_truncated_verdict_is_set_aside(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The sound one stays, the damaged one keeps its bytes under another name."""
    (verdict,) = decide((), (), DecisionContext(NOW))
    save_new(tmp_path, verdict)
    bad = tmp_path / "verdicts" / "V-BAD.json"
    bad.write_bytes(content)
    assert [stored.verdict.id for stored in load_all(tmp_path)] == [verdict.id]
    assert "V-BAD.json: damaged; set aside" in caplog.text
    assert bad.with_name("V-BAD.json.damaged-1").read_bytes() == content
    assert not bad.exists()


def test_two_causes_of_one_look_are_both_open_and_a_later_look_closes_both(tmp_path: Path) -> None:
    """`fix` refused the more likely one, because the other was stored after it."""
    first = example_verdict()
    second = replace(first, id="V-2", fault=FaultClass.STRAGGLER_SLOW)
    for verdict in (first, second):
        save_new(tmp_path, verdict)
    assert {s.verdict.id for s in open_verdicts(tmp_path)} == {"V-1", "V-2"}
    later = replace(first, id="V-3", decided_at=first.decided_at + timedelta(minutes=1))
    save_new(tmp_path, later)
    assert [s.verdict.id for s in open_verdicts(tmp_path)] == ["V-3"]


def test_an_id_that_was_replaced_leads_to_its_successor(tmp_path: Path) -> None:
    """A page keeps the id it was sent with, and the person it woke types that."""
    first = example_verdict()
    for number in (2, 3):
        save_new(tmp_path, first)
        at = first.decided_at + timedelta(minutes=number)
        first = replace(first, id=f"V-{number}", decided_at=at)
    save_new(tmp_path, first)
    assert the_one(tmp_path, "V-1").verdict.id == "V-3"
    assert to_read(tmp_path, "V-2").verdict.id == "V-3"
    assert load(tmp_path, "V-1").note == "V-2"


def test_a_run_closes_what_was_said_anew_while_it_waited(tmp_path: Path) -> None:
    """The first was confirmed meanwhile, so that the next look opened another one."""
    first = example_verdict()
    began = first.decided_at + timedelta(minutes=5)
    later = replace(first, id="V-4", decided_at=began + timedelta(minutes=1))
    save(tmp_path, StoredVerdict(first, VerdictState.CONFIRMED))
    for name, fault in (("V-2", first.fault), ("V-3", FaultClass.STRAGGLER_SLOW)):
        save(tmp_path, StoredVerdict(replace(first, id=name, fault=fault), VerdictState.OPEN))
    save(tmp_path, StoredVerdict(later, VerdictState.OPEN))
    close_acted_on(tmp_path, "V-1", "R-7", began)
    assert load(tmp_path, "V-1").state is VerdictState.CONFIRMED
    assert load(tmp_path, "V-2").note == "R-7"
    assert {s.verdict.id for s in open_verdicts(tmp_path)} == {"V-3", "V-4"}


def test_two_ids_that_name_each_other_end(tmp_path: Path) -> None:
    """A damaged or edited store must not hang the command."""
    verdict = example_verdict()
    for name, other in (("V-1", "V-2"), ("V-2", "V-1")):
        save(tmp_path, StoredVerdict(replace(verdict, id=name), VerdictState.SUPERSEDED, other))
    assert current(tmp_path, "V-1").verdict.id in ("V-1", "V-2")
