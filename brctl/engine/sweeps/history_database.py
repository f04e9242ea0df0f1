"""The SQLite file behind the history: an index that the sweeps can rebuild, and trends.

Trends are in no other file: a damaged index takes them along, and nothing is decided by them
(decision 0406).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from brctl.library.durable_files import private_dir

FILE_NAME = "history.sqlite3"

_TABLES = """
CREATE TABLE IF NOT EXISTS sweeps (
    id TEXT PRIMARY KEY, at TEXT NOT NULL, seconds REAL NOT NULL, level INTEGER NOT NULL,
    ok INTEGER NOT NULL, warn INTEGER NOT NULL, crit INTEGER NOT NULL, unknown INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tracked (
    node TEXT NOT NULL, check_name TEXT NOT NULL, health TEXT NOT NULL, detail TEXT NOT NULL,
    since TEXT NOT NULL, told_at TEXT NOT NULL, clean_looks INTEGER NOT NULL, recovered_at TEXT,
    flaps INTEGER NOT NULL, PRIMARY KEY (node, check_name));
CREATE TABLE IF NOT EXISTS transitions (
    sweep TEXT NOT NULL, at TEXT NOT NULL, node TEXT NOT NULL, check_name TEXT NOT NULL,
    health TEXT NOT NULL, what TEXT NOT NULL, detail TEXT NOT NULL,
    PRIMARY KEY (sweep, node, check_name));
CREATE INDEX IF NOT EXISTS transitions_by_node ON transitions (node, at);
CREATE TABLE IF NOT EXISTS nodes (
    node TEXT PRIMARY KEY, health TEXT NOT NULL, check_name TEXT NOT NULL, detail TEXT NOT NULL,
    at TEXT NOT NULL, sweep TEXT NOT NULL, answer BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS node_past (
    node TEXT NOT NULL, at TEXT NOT NULL, health TEXT NOT NULL, check_name TEXT NOT NULL,
    detail TEXT NOT NULL, PRIMARY KEY (node, at));
CREATE TABLE IF NOT EXISTS totals (name TEXT PRIMARY KEY, value REAL NOT NULL);
CREATE TABLE IF NOT EXISTS trend_series (
    id INTEGER PRIMARY KEY, context TEXT NOT NULL, subject TEXT NOT NULL, metric TEXT NOT NULL,
    UNIQUE (context, subject, metric));
CREATE TABLE IF NOT EXISTS trend_points (
    every_s INTEGER NOT NULL, at INTEGER NOT NULL, series INTEGER NOT NULL, value REAL NOT NULL,
    looks INTEGER NOT NULL, PRIMARY KEY (every_s, at, series)) WITHOUT ROWID;
"""


def database_path(state_dir: Path) -> Path:
    """Where the index of a state directory lies."""
    return state_dir / "sweeps" / FILE_NAME


@contextmanager
def open_history(state_dir: Path) -> Iterator[sqlite3.Connection]:
    """A connection with all tables; commits at the end of the block, rolls back on an error."""
    path = database_path(state_dir)
    private_dir(path.parent)
    with closing(_connect(path)) as database, database:
        yield database


def _connect(path: Path) -> sqlite3.Connection:
    """The index; one that is damaged is set aside and begun anew, for the sweeps hold the truth."""
    database = sqlite3.connect(path, timeout=10.0)
    try:
        _prepare(database)
    except sqlite3.DatabaseError as exc:
        database.close()
        # Busy, read-only and full have subclasses of their own and damage nothing.
        if type(exc) is not sqlite3.DatabaseError:
            raise
        path.replace(path.with_suffix(".damaged"))
        database = sqlite3.connect(path, timeout=10.0)
        _prepare(database)
    return database


def _prepare(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.executescript(_TABLES)
    _add_told(database)


def _add_told(database: sqlite3.Connection) -> None:
    """An index of before knew one table: what it held had been told, or would be told again now."""
    known = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'told'"
    if database.execute(known).fetchone()[0]:
        return
    database.executescript(
        "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS told ("
        "node TEXT NOT NULL, check_name TEXT NOT NULL, health TEXT NOT NULL, detail TEXT NOT NULL,"
        "since TEXT NOT NULL, told_at TEXT NOT NULL, clean_looks INTEGER NOT NULL,"
        "recovered_at TEXT, flaps INTEGER NOT NULL, PRIMARY KEY (node, check_name));"
        "INSERT OR IGNORE INTO told SELECT * FROM tracked; COMMIT;"
    )
