"""The append-only ledger of one job's code changes: `code/CONTEXT/JOB/events.ndjson`.

Lines are those of a run's journal: numbered, chained, on disk when a call returns, readable by
their owner only. Every call looks again under a lock before it writes, so repeating one is safe.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from brctl.journal.chain_key import own_key
from brctl.journal.store import PRIVATE_FILE, keyed_journal, read_journal
from brctl.library.durable_files import private_dir
from brctl.model.errors import ConfigError, UsageError
from brctl.model.jobs.code import ChangeState, CodeChange, CodeStart
from brctl.model.jobs.job import Job
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json
from brctl.playbook.code_changes import CodeRecord, read_changes


def ledger_dir(state_dir: Path, context: str, job: str) -> Path:
    """Where a job's ledger lies."""
    return state_dir / "code" / context / job


def with_code(job: Job, ledger: "CodeLedger") -> Job:
    """The job with the code its ranks start from now; a job without `code` stays as it is."""
    if job.code is None:
        return job
    record = ledger.read()
    return replace(job, code=record.code_of(job.code, record.current))


class CodeLedger:
    """See the head of this file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self) -> CodeRecord:
        """The changes so far; none when nothing was ever recorded.

        Raises:
            ConfigError: A line was lost or altered. It is never taken for "nothing changed".
        """
        recording = read_journal(self._directory, own_key())
        # A torn last line was never acknowledged to anybody.
        damage = recording.damage[: -1 if recording.torn else None]
        if damage:
            raise ConfigError("; ".join(damage[:2]), hint="restore the file; no code was changed")
        return read_changes(recording.events)

    def record(
        self, version: str, digest: str, *, urgent: bool, why: str, by: str, at: datetime
    ) -> CodeChange:
        """Note a wish; the job still runs what it ran.

        Raises:
            UsageError: The job runs this content already, or it waits already.
        """
        with self._locked() as before:
            _refuse_same(before, version, digest)
            change_id = f"C-{len(before.changes) + 1:04d}"
            self._append(
                EventType.CODE_RECORDED,
                at,
                {
                    "change": change_id, "version": version, "digest": digest, "urgent": urgent,
                    "why": why, "by": by,
                },
            )  # fmt: skip
        return self._of(change_id)

    def apply(self, change_id: str, run: str, at: datetime) -> CodeChange:
        """Let the ranks start with a change from now on.

        Raises:
            UsageError: The change does not wait any more.
        """
        with self._locked() as before:
            change = before.change(change_id)
            if change is None or change.state is not ChangeState.PENDING:
                if change is None or (change.state, change.state_by) != (ChangeState.APPLIED, run):
                    raise UsageError(f"{change_id} does not wait: {_describe(change)}")
            else:
                self._append(EventType.CODE_APPLIED, at, {"change": change_id, "by_run": run})
        return self._of(change_id)

    def roll_back(self, change_id: str, run: str, at: datetime) -> CodeChange:
        """Let the ranks start as before a change, which must be the newest applied one.

        Raises:
            UsageError: It is not.
        """
        with self._locked() as before:
            done = before.switched_by(run, ChangeState.ROLLED_BACK)
            if done is None or done.id != change_id:
                if before.current is None or before.current.id != change_id:
                    current = _describe(before.change(change_id))
                    raise UsageError(f"{change_id} is not what the job runs: {current}")
                self._append(EventType.CODE_ROLLED_BACK, at, {"change": change_id, "by_run": run})
        return self._of(change_id)

    def undo_switches(self, run: str, at: datetime) -> bool:
        """Undo what a run switched and nobody switched since; whether there was anything."""
        with self._locked() as before:
            own = [c for c in before.changes if c.state_by == run]
            if own:
                self._append(EventType.CODE_UNDONE, at, {"by_run": run})
        return bool(own)

    def started(self, start: CodeStart) -> None:
        """Note that the ranks are being started; a second try of one run is no second start."""
        with self._locked() as before:
            last = before.starts[-1] if before.starts else None
            if last is None or (last.run, last.change, last.checkpoint) != (
                start.run,
                start.change,
                start.checkpoint,
            ):
                fields: dict[str, Json] = {
                    "by_run": start.run, "version": start.version, "change": start.change,
                    "digest": start.digest, "checkpoint": start.checkpoint,
                }  # fmt: skip
                self._append(EventType.CODE_STARTED, start.at, fields)

    def _of(self, change_id: str) -> CodeChange:
        return next(c for c in self.read().changes if c.id == change_id)

    @contextmanager
    def _locked(self) -> Iterator[CodeRecord]:
        private_dir(self._directory)
        descriptor = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield self.read()
        finally:
            os.close(descriptor)

    def _append(self, kind: EventType, at: datetime, fields: Mapping[str, Json]) -> None:
        with closing(keyed_journal(self._directory)) as journal:
            journal.append(kind, at, fields)


def _refuse_same(record: CodeRecord, version: str, digest: str) -> None:
    ran = next((s for s in record.starts if s.version == version and s.digest != digest), None)
    if ran is not None:
        raise UsageError(
            f"{version} had other content when {ran.run} started it ({ran.digest[:12]})",
            hint="a rollback must find what ran: give new content a new name",
        )
    for change, reason in ((record.pending, "waits already"), (record.current, "is what it runs")):
        if change is not None and (change.version, change.digest) == (version, digest):
            raise UsageError(f"{version} {reason} ({change.id}, {change.why})")


def _describe(change: CodeChange | None) -> str:
    if change is None:
        return "there is no such change"
    return f"it is {change.state}" + (f" by {change.state_by}" if change.state_by else "")
