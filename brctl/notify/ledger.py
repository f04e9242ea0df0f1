"""What was told to whom, and how often it failed; shared by every process of a state directory.

Losing this file costs one repeated page per open fault, so it is never the only copy of anything.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from brctl.library.durable_files import private_dir
from brctl.model.notice import OPEN_STATES, Memory, NoticeState
from brctl.model.units import parse_rfc3339, rfc3339

FILE_NAME = "notify.sqlite3"
KEPT = timedelta(days=30)
_BUSY_S = 2.0
_TABLES = """
CREATE TABLE IF NOT EXISTS told (
    key TEXT NOT NULL, sink TEXT NOT NULL, state TEXT NOT NULL, marks TEXT NOT NULL,
    at TEXT NOT NULL, ref TEXT NOT NULL, PRIMARY KEY (key, sink));
CREATE TABLE IF NOT EXISTS claims (
    key TEXT NOT NULL, sink TEXT NOT NULL, mark TEXT NOT NULL, until TEXT NOT NULL,
    PRIMARY KEY (key, sink, mark));
CREATE TABLE IF NOT EXISTS failures (
    sink TEXT PRIMARY KEY, count INTEGER NOT NULL, at TEXT NOT NULL, why TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tickets (
    key TEXT PRIMARY KEY, ticket TEXT NOT NULL, run TEXT NOT NULL, at TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Failures:
    """How often a sink could not be told, and what it said last."""

    count: int
    at: datetime
    why: str


class DeliveryLedger:
    """The database of one state directory; opened for each use, because uses are rare."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "notify" / FILE_NAME

    def claim(
        self, key: str, sink: str, mark: str, now_at: datetime, hold_s: float
    ) -> tuple[bool, Memory | None]:
        """Take the right to tell this, and what was told before; False: another process has it.

        A process that dies leaves a claim that runs out, so the next repeat tells it.
        """
        until = rfc3339(now_at + timedelta(seconds=hold_s))
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("DELETE FROM claims WHERE until < ?", (rfc3339(now_at),))
            taken = database.execute(
                "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)", (key, sink, mark, until)
            )
            return taken.rowcount == 1, _memory(database, key, sink)

    def release(self, key: str, sink: str, mark: str) -> None:
        """Nothing was told after all."""
        with self._open() as database:
            database.execute(
                "DELETE FROM claims WHERE key = ? AND sink = ? AND mark = ?", (key, sink, mark)
            )

    def keep(self, key: str, sink: str, memory: Memory) -> None:
        """Remember that it was told."""
        with self._open() as database:
            database.execute(
                "INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?, ?, ?)",
                (key, sink, memory.state.value, json.dumps(memory.marks), rfc3339(memory.at),
                 json.dumps(dict(memory.ref))),
            )  # fmt: skip
            database.execute(
                "DELETE FROM told WHERE state = ? AND at < ?",
                (NoticeState.RESOLVED.value, rfc3339(memory.at - KEPT)),
            )

    def count_failure(self, sink: str, why: str, now_at: datetime) -> None:
        """Add one to the failures of a sink."""
        with self._open() as database:
            database.execute(
                "INSERT INTO failures VALUES (?, 1, ?, ?) ON CONFLICT(sink) DO UPDATE SET "
                "count = count + 1, at = excluded.at, why = excluded.why",
                (sink, rfc3339(now_at), why),
            )

    def failures(self) -> Mapping[str, Failures]:
        """Failures by sink since this file began."""
        with self._open() as database:
            rows = database.execute("SELECT sink, count, at, why FROM failures ORDER BY sink")
            return {r[0]: Failures(r[1], parse_rfc3339(r[2]), r[3]) for r in rows.fetchall()}

    def open_keys(self, prefix: str) -> tuple[str, ...]:
        """Keys under a prefix that some sink still holds open."""
        with self._open() as database:
            rows = database.execute(
                "SELECT DISTINCT key FROM told WHERE state IN (?, ?) AND substr(key, 1, ?) = ? "
                "ORDER BY key",
                (*sorted(state.value for state in OPEN_STATES), len(prefix), prefix),
            )
            return tuple(row[0] for row in rows.fetchall())

    def ticket(self, key: str, now_at: datetime) -> tuple[str, str] | None:
        """The ticket an idempotency key has opened within KEPT, and the run that opened it."""
        with self._open() as database:
            row = database.execute(
                "SELECT ticket, run FROM tickets WHERE key = ? AND at > ?",
                (key, rfc3339(now_at - KEPT)),
            ).fetchone()
        return (str(row[0]), str(row[1])) if row else None

    def keep_ticket(self, key: str, ticket: str, run: str, now_at: datetime) -> None:
        """Remember which ticket a key has opened."""
        with self._open() as database:
            row = (key, ticket, run, rfc3339(now_at))
            database.execute("INSERT OR REPLACE INTO tickets VALUES (?, ?, ?, ?)", row)

    def forget_ticket(self, key: str) -> None:
        """The ticket of a key was withdrawn."""
        with self._open() as database:
            database.execute("DELETE FROM tickets WHERE key = ?", (key,))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        private_dir(self._path.parent)
        with closing(_connect(self._path)) as database, database:
            yield database


def _connect(path: Path) -> sqlite3.Connection:
    """The database; a damaged one is set aside, for silence would be worse than a repeated page."""
    database = sqlite3.connect(path, timeout=_BUSY_S)
    try:
        database.executescript(_TABLES)
    except sqlite3.DatabaseError as exc:
        database.close()
        # Busy, read-only and full have subclasses of their own and damage nothing.
        if type(exc) is not sqlite3.DatabaseError:
            raise
        path.replace(path.with_suffix(".damaged"))
        database = sqlite3.connect(path, timeout=_BUSY_S)
        database.executescript(_TABLES)
    return database


def _memory(database: sqlite3.Connection, key: str, sink: str) -> Memory | None:
    row = database.execute(
        "SELECT state, marks, at, ref FROM told WHERE key = ? AND sink = ?", (key, sink)
    ).fetchone()
    if row is None:
        return None
    marks = tuple(json.loads(row[1]))
    return Memory(NoticeState(row[0]), marks, parse_rfc3339(row[2]), json.loads(row[3]))
