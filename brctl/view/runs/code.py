"""The code of a job as people read it: what it runs, what waits, and how it came to that."""

from collections.abc import Sequence
from datetime import datetime

from brctl.model.jobs.code import ChangeState, CodeChange, JobCode
from brctl.model.units import describe_duration, rfc3339, utc_text
from brctl.playbook.code_changes import CodeRecord
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

_DIGITS = 12


def code_document(code: JobCode | None) -> dict[str, Json] | None:
    """The code part of a job; None when job.yaml has none."""
    if code is None:
        return None
    return {
        "version": code.version,
        "directory": str(code.directory),
        "digest": code.digest or None,
        "change": code.change or None,
        "pending": code.pending or None,
    }


def code_line(code: JobCode) -> str:
    """What a job runs, in one line."""
    by = f" ({code.change})" if code.change else ""
    waits = f"; {code.pending} waits for the next restart" if code.pending else ""
    return f"code {code.version}{by}{waits}"


def code_changes_page(
    job: str, code: JobCode, record: CodeRecord, now: datetime, window_s: float
) -> Page:
    """The answer of `job updates`: every change, newest first, and what became of it."""
    rows = [_row(record, change) for change in reversed(record.changes)]
    head = ["CHANGE", "STATE", "RELEASE", "DIGEST", "RECORDED", "BY", "RUN", "FROM", "WHY"]
    shown = [_cells(change, record) for change in reversed(record.changes)]
    lines = [f"{job}: {code_line(code)}", *_waiting(record, now, window_s)]
    if shown:
        lines.append(columns([head, *shown]))
    body: dict[str, Json] = {"job": job, "code": code_document(code), "changes": rows}
    names = tuple(change.id for change in reversed(record.changes))
    text, apply_now = "\n".join(lines), f"brctl play run hot-update --set job={job}"
    following = (apply_now,) if record.pending else ()
    return Page("CodeChanges", body, text, names=names, rows=tuple(rows), next=following)


def _waiting(record: CodeRecord, now: datetime, window_s: float) -> Sequence[str]:
    change = record.pending
    if change is None:
        return ()
    waited_s = (now - change.waits_since).total_seconds()
    if change.urgent:
        return (f"{change.id} is urgent and has waited for {describe_duration(waited_s)}",)
    left_s = window_s - waited_s
    when = f"forced in {describe_duration(left_s)}" if left_s > 0 else "due"
    return (f"{change.id} has waited for {describe_duration(waited_s)}, {when}",)


def _cells(change: CodeChange, record: CodeRecord) -> list[str]:
    start = record.start_of(change)
    came_from = start.checkpoint.rpartition("/")[2] if start else ""
    state = f"{change.state}, urgent" if _urgent_now(change) else str(change.state)
    return [
        change.id, state, change.version, change.digest[:_DIGITS], utc_text(change.recorded_at),
        printable(change.by), change.state_by or "-", came_from or "-", printable(change.why),
    ]  # fmt: skip


def _urgent_now(change: CodeChange) -> bool:
    return change.urgent and change.state is ChangeState.PENDING


def _row(record: CodeRecord, change: CodeChange) -> dict[str, Json]:
    start = record.start_of(change)
    return {
        "change": change.id,
        "state": str(change.state),
        "release": change.version,
        "digest": change.digest,
        "urgent": change.urgent,
        "why": change.why,
        "by": change.by,
        "recorded_at": rfc3339(change.recorded_at),
        "waits_since": rfc3339(change.waits_since),
        "state_by": change.state_by or None,
        "state_at": rfc3339(change.state_at),
        "started_by": start.run if start else None,
        "started_from": (start.checkpoint or None) if start else None,
        "started_at": rfc3339(start.at) if start else None,
    }
