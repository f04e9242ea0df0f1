"""What a job's ledger of code changes comes to: its lines, read from the first to the last.

A release is a whole directory, so at most one change waits: a newer one supersedes it and inherits
its urgency and the time it has waited. Every switch carries the run that made it, and `code.undone`
takes back what that run switched and nobody switched since.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from brctl.model.jobs.code import ChangeState, CodeChange, CodeStart, JobCode
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json

S = ChangeState


@dataclass(frozen=True, slots=True)
class CodeRecord:
    """A job's code changes, oldest first, and every start of its ranks."""

    changes: tuple[CodeChange, ...] = ()
    starts: tuple[CodeStart, ...] = ()

    @property
    def pending(self) -> CodeChange | None:
        """The change that waits."""
        return self._newest(S.PENDING)

    @property
    def current(self) -> CodeChange | None:
        """The newest applied change; None while the job runs what job.yaml names."""
        return self._newest(S.APPLIED)

    @property
    def previous(self) -> CodeChange | None:
        """The applied change before the newest one."""
        applied = [c for c in self.changes if c.state is S.APPLIED]
        return applied[-2] if len(applied) > 1 else None

    def change(self, change_id: str) -> CodeChange | None:
        """The change of this id."""
        return next((c for c in self.changes if c.id == change_id), None)

    def switched_by(self, run: str, state: ChangeState) -> CodeChange | None:
        """The change a run brought into a state, if it still is in it."""
        own = [c for c in self.changes if c.state is state and c.state_by == run]
        return own[-1] if own else None

    def start_of(self, change: CodeChange) -> CodeStart | None:
        """The first start of the ranks with a change."""
        return next((s for s in self.starts if s.change == change.id), None)

    def first_digest(self, version: str) -> str:
        """The content the release of job.yaml had when the ranks first started from it."""
        return next((s.digest for s in self.starts if s.version == version and not s.change), "")

    def code_of(self, declared: JobCode, change: CodeChange | None) -> JobCode:
        """The code part of a job whose ranks start with a change; None for job.yaml's release."""
        waits = self.pending.id if self.pending else ""
        if change is not None:
            named = (change.version, change.digest, change.id)
        else:
            named = (declared.start, self.first_digest(declared.start), "")
        return JobCode(declared.releases, declared.start, *named, waits)

    def _newest(self, state: ChangeState) -> CodeChange | None:
        return next((c for c in reversed(self.changes) if c.state is state), None)


def is_due(change: CodeChange, now: datetime, window_s: float) -> bool:
    """Whether a change is urgent or has waited for the whole window."""
    return change.urgent or (now - change.waits_since).total_seconds() >= window_s


def read_changes(events: Iterable[Event]) -> CodeRecord:
    """The record that a ledger's lines come to."""
    book = _Book()
    for event in events:
        if event.type in _TURNS:
            _TURNS[event.type](book, event)
    return CodeRecord(tuple(book.changes.values()), tuple(book.starts))


@dataclass(slots=True)
class _Book:
    """The changes while the lines are read, and how each was before a run switched it."""

    changes: dict[str, CodeChange] = field(default_factory=dict)
    starts: list[CodeStart] = field(default_factory=list)
    before: dict[tuple[str, str], CodeChange] = field(default_factory=dict)

    def switch(self, change: CodeChange, state: ChangeState, by: str, at: datetime) -> None:
        self.before[by, change.id] = change
        self.changes[change.id] = replace(change, state=state, state_by=by, state_at=at)

    def waiting(self) -> list[CodeChange]:
        return [c for c in self.changes.values() if c.state is S.PENDING]


def _recorded(book: _Book, event: Event) -> None:
    fields, waiting = event.fields, book.waiting()
    change = CodeChange(
        id=_text(fields, "change"),
        version=_text(fields, "version"),
        digest=_text(fields, "digest"),
        urgent=fields.get("urgent") is True or any(c.urgent for c in waiting),
        why=_text(fields, "why"),
        by=_text(fields, "by"),
        recorded_at=event.at,
        waits_since=min([event.at, *(c.waits_since for c in waiting)]),
        state=S.PENDING,
        state_by="",
        state_at=event.at,
    )
    for older in waiting:
        book.switch(older, S.SUPERSEDED, change.id, event.at)
    book.changes[change.id] = change


def _applied(book: _Book, event: Event) -> None:
    change = book.changes.get(_text(event.fields, "change"))
    if change is not None:
        book.switch(change, S.APPLIED, _text(event.fields, "by_run"), event.at)


def _rolled_back(book: _Book, event: Event) -> None:
    """What waits was made on top of what is rolled back, so it may not slip in at a restart."""
    run = _text(event.fields, "by_run")
    change = book.changes.get(_text(event.fields, "change"))
    if change is not None:
        book.switch(change, S.ROLLED_BACK, run, event.at)
    for waiting in book.waiting():
        book.switch(waiting, S.SUPERSEDED, run, event.at)


def _undone(book: _Book, event: Event) -> None:
    run = _text(event.fields, "by_run")
    # The newest first: what waits again is judged by what is newer and waits or runs by then.
    for change in [c for c in reversed(book.changes.values()) if c.state_by == run]:
        before = book.before[run, change.id]
        newer = [c for c in book.changes.values() if c.id > change.id and _counts(c)]
        if before.state is S.PENDING and newer:
            book.switch(change, S.SUPERSEDED, newer[-1].id, event.at)
        else:
            book.changes[change.id] = before
    for older in book.waiting()[:-1]:
        book.switch(older, S.SUPERSEDED, book.waiting()[-1].id, event.at)


def _counts(change: CodeChange) -> bool:
    return change.state in (S.PENDING, S.APPLIED)


def _started(book: _Book, event: Event) -> None:
    fields = event.fields
    run, version, change = (_text(fields, name) for name in ("by_run", "version", "change"))
    digest, checkpoint = _text(fields, "digest"), _text(fields, "checkpoint")
    book.starts.append(CodeStart(run, version, change, digest, checkpoint, event.at))


def _text(fields: Mapping[str, Json], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


_TURNS = {
    EventType.CODE_RECORDED: _recorded,
    EventType.CODE_APPLIED: _applied,
    EventType.CODE_ROLLED_BACK: _rolled_back,
    EventType.CODE_UNDONE: _undone,
    EventType.CODE_STARTED: _started,
}
