"""What a ledger's lines come to, whatever their order."""

from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from brctl.model.jobs.code import ChangeState, JobCode
from brctl.model.runs.event import Event, EventType
from brctl.playbook.code_changes import CodeRecord, is_due, read_changes

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
HOUR_S = 3600.0
CODE = JobCode(PurePosixPath("/code"), "r1", "r1")
E = EventType


class LedgerLines:
    """A ledger in the making, one line an hour."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: EventType, **fields: str | bool) -> CodeRecord:
        seq = len(self.events)
        self.events.append(Event(seq, kind, "demo", NOON + timedelta(hours=seq), fields))
        return read_changes(self.events)

    def record(self, number: int, *, urgent: bool = False) -> CodeRecord:
        return self.add(
            E.CODE_RECORDED, change=f"C-{number:04d}", version=f"r{number}", digest=f"d{number}",
            urgent=urgent, why="why", by="ann",
        )  # fmt: skip


def states(record: CodeRecord) -> list[str]:
    return [str(change.state) for change in record.changes]


def test_a_newer_change_supersedes_the_one_that_waits_and_inherits_its_wait() -> None:
    """Recording again and again does not put the forced moment off for ever."""
    lines = LedgerLines()
    lines.record(2, urgent=True)
    record = lines.record(3)
    assert states(record) == ["superseded", "pending"]
    assert record.changes[0].state_by == "C-0003"
    assert record.pending is not None
    assert record.pending.urgent
    assert record.pending.waits_since == NOON


def test_a_change_is_due_when_it_is_urgent_or_has_waited_for_the_window() -> None:
    lazy = LedgerLines().record(2).pending
    assert lazy is not None
    assert not is_due(lazy, NOON + timedelta(hours=23), 24 * HOUR_S)
    assert is_due(lazy, NOON + timedelta(hours=24), 24 * HOUR_S)
    urgent = LedgerLines().record(2, urgent=True).pending
    assert urgent is not None
    assert is_due(urgent, NOON, 24 * HOUR_S)


def test_rollbacks_walk_back_change_by_change_to_the_code_of_job_yaml() -> None:
    """Each finds the digest that ran before it."""
    lines = LedgerLines()
    lines.add(E.CODE_STARTED, by_run="R-0", version="r1", change="", digest="d1", checkpoint="")
    for number in (2, 3):
        lines.record(number)
        lines.add(E.CODE_APPLIED, change=f"C-{number:04d}", by_run=f"R-{number}")
    record, found = read_changes(lines.events), []
    while record.current is not None:
        back = record.code_of(CODE, record.previous)
        found.append((record.current.version, back.version, back.digest))
        change = record.current.id
        record = lines.add(E.CODE_ROLLED_BACK, change=change, by_run=f"R-9{change}")
    assert found == [("r3", "r2", "d2"), ("r2", "r1", "d1")]
    assert record.code_of(CODE, None).directory == PurePosixPath("/code/r1")


def test_a_rollback_puts_aside_what_waits_and_its_undo_brings_both_back() -> None:
    """What waits was made on top of the change that is taken back."""
    lines = LedgerLines()
    lines.record(2)
    lines.add(E.CODE_APPLIED, change="C-0002", by_run="R-1")
    lines.record(3)
    assert states(lines.add(E.CODE_ROLLED_BACK, change="C-0002", by_run="R-2")) == [
        "rolled-back", "superseded",
    ]  # fmt: skip
    assert states(lines.add(E.CODE_UNDONE, by_run="R-2")) == ["applied", "pending"]


def test_undoing_a_hot_update_after_a_newer_wish_does_not_let_two_wait() -> None:
    lines = LedgerLines()
    lines.record(2)
    lines.add(E.CODE_APPLIED, change="C-0002", by_run="R-1")
    lines.record(3)
    assert states(lines.add(E.CODE_UNDONE, by_run="R-1")) == ["superseded", "pending"]


@given(st.lists(st.tuples(st.sampled_from(["recorded", "applied", "rolled-back", "undone"]),
                          st.integers(1, 4), st.integers(1, 3)), max_size=25))  # fmt: skip
def test_whatever_is_written_at_most_one_change_waits(moves: list[tuple[str, int, int]]) -> None:
    """Also for lines no ledger would write; a change never gets lost."""
    lines, recorded = LedgerLines(), 0
    for kind, number, run in moves:
        if kind == "recorded":
            recorded += 1
            record = lines.record(recorded)
        else:
            record = lines.add(
                EventType(f"code.{kind}"), change=f"C-{number:04d}", by_run=f"R-{run}"
            )
        assert sum(c.state is ChangeState.PENDING for c in record.changes) <= 1
        assert len(record.changes) == recorded
