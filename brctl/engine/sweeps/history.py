"""What sweeps found, over time: an SQLite index that can be rebuilt from the sweep files."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from brctl.engine.sweeps.history_database import open_history
from brctl.model.sweeps.changes import Changes, CheckProblem, Key, Tracked
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.model.sweeps.transition import Transition
from brctl.model.units import parse_rfc3339, rfc3339
from brctl.sweep.changes import compare, recognise_mass
from brctl.sweep.problems import cleared_by, problems_of

KEPT = timedelta(days=90)


class SweepHistory:
    """The history of one context's sweeps. Safe for several brctl processes at once."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir

    def record(
        self,
        sweep: Sweep,
        labels: Mapping[str, Mapping[str, str]],
        reminder: timedelta,
        *,
        regular: bool = False,
    ) -> Changes:
        """Add a sweep and say what changed; a sweep that is already there changes nothing.

        What regular sweeps told is kept apart from what was seen at all: whoever looks by hand in
        between must not take the news from those who are paged.

        Args:
            sweep: The newest one.
            labels: Of every node asked, to recognise a failure they share.
            reminder: A problem that lasts is told again after this long.
            regular: From cron: what changed since the last regular one is what is told.
        """
        with open_history(self._state_dir) as database:
            database.execute("BEGIN IMMEDIATE")
            first = database.execute("SELECT COUNT(*) FROM sweeps").fetchone()[0] == 0
            if not _add_sweep(database, sweep):
                return Changes(tracked=_tracked(database))
            changes = _compare(database, sweep, reminder, "tracked")
            _add_transitions(database, sweep, changes)
            if regular:
                changes = _compare(database, sweep, reminder, "told")
            _count(database, sweep.nodes)
            _forget(database, sweep.started_at - KEPT)
        # Without an earlier look nobody knows that the nodes began to fail together.
        return changes if first else recognise_mass(changes, labels)

    def of_node(self, node: str, since: datetime) -> tuple[Transition, ...]:
        """What changed on a node, oldest first."""
        return self._transitions("node = ? AND at >= ?", (node, rfc3339(since)))

    def news_since(self, since: datetime) -> tuple[Transition, ...]:
        """What changed on any node, oldest first."""
        return self._transitions("at >= ?", (rfc3339(since),))

    def flappers(self, since: datetime, least: int = 3) -> tuple[tuple[str, str, int], ...]:
        """Node, check and how often the check began to fail, most often first.

        A check that keeps flapping is told once and leaves no transitions after that; how often it
        came back still stands with the tracked problem.
        """
        query = (
            "SELECT node, check_name, MAX(times) AS most FROM ("
            "SELECT node, check_name, COUNT(*) AS times FROM transitions "
            "WHERE what IN ('new', 'flapping') AND at >= ?1 GROUP BY node, check_name "
            "UNION ALL SELECT node, check_name, flaps + 1 FROM tracked WHERE since >= ?1) "
            "GROUP BY node, check_name HAVING most >= ?2 ORDER BY most DESC, node, check_name"
        )
        with open_history(self._state_dir) as database:
            return tuple(database.execute(query, (rfc3339(since), least)).fetchall())

    def sweeps_since(self, since: datetime) -> int:
        """How many sweeps were recorded: without any, no flapper means nothing."""
        query = "SELECT COUNT(*) FROM sweeps WHERE at >= ?"
        with open_history(self._state_dir) as database:
            return int(database.execute(query, (rfc3339(since),)).fetchone()[0])

    def totals(self) -> Mapping[str, float]:
        """Counters since the index began, by Prometheus series."""
        with open_history(self._state_dir) as database:
            return dict(database.execute("SELECT name, value FROM totals ORDER BY name").fetchall())

    def last_success_at(self, except_id: str) -> datetime | None:
        """When the newest other sweep began that could tell something of most of its nodes."""
        query = "SELECT MAX(at) FROM sweeps WHERE id != ? AND unknown <= ok + warn + crit"
        with open_history(self._state_dir) as database:
            found = database.execute(query, (except_id,)).fetchone()[0]
        return parse_rfc3339(found) if found else None

    def tracked(self) -> Mapping[Key, Tracked]:
        """Every known problem, recovered ones included."""
        with open_history(self._state_dir) as database:
            return _tracked(database)

    def _transitions(self, where: str, values: tuple[str, ...]) -> tuple[Transition, ...]:
        query = (
            "SELECT at, node, check_name, health, what, detail FROM transitions "  # noqa: S608
            f"WHERE {where} ORDER BY at, node, check_name"
        )
        with open_history(self._state_dir) as database:
            rows = database.execute(query, values).fetchall()
        return tuple(
            Transition(parse_rfc3339(r[0]), r[1], r[2], Health(r[3]), r[4], r[5]) for r in rows
        )


def _add_sweep(database: sqlite3.Connection, sweep: Sweep) -> bool:
    counts = [
        len(sweep.of(h)) for h in (Health.OK, Health.WARNING, Health.CRITICAL, Health.UNKNOWN)
    ]
    row = (sweep.id, rfc3339(sweep.started_at), sweep.seconds, sweep.level, *counts)
    added = database.execute("INSERT OR IGNORE INTO sweeps VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return added.rowcount == 1


def _compare(
    database: sqlite3.Connection, sweep: Sweep, reminder: timedelta, table: str
) -> Changes:
    """What a sweep changes in what one table knew; the table knows it from here on."""
    problems, cleared = problems_of(sweep.nodes), cleared_by(sweep.nodes)
    known = _tracked(database, table)
    changes = compare(known, problems, cleared, sweep.started_at, reminder)
    _save(database, changes, table)
    return changes


def _tracked(database: sqlite3.Connection, table: str = "tracked") -> dict[Key, Tracked]:
    columns = "node, check_name, health, detail, since, told_at, clean_looks, recovered_at, flaps"
    rows = database.execute(f"SELECT {columns} FROM {table}")  # noqa: S608 - a name of ours
    return {
        (r[0], r[1]): Tracked(
            CheckProblem(r[0], r[1], Health(r[2]), r[3]), parse_rfc3339(r[4]), parse_rfc3339(r[5]),
            r[6], parse_rfc3339(r[7]) if r[7] else None, r[8],
        )
        for r in rows
    }  # fmt: skip


def _save(database: sqlite3.Connection, changes: Changes, table: str) -> None:
    database.executemany(
        f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [
            (
                *key, t.problem.health.value, t.problem.detail, rfc3339(t.since),
                rfc3339(t.told_at), t.clean_looks,
                rfc3339(t.recovered_at) if t.recovered_at else None, t.flaps,
            )
            for key, t in changes.tracked.items()
        ],
    )  # fmt: skip


def _add_transitions(database: sqlite3.Connection, sweep: Sweep, changes: Changes) -> None:
    database.executemany(
        "INSERT OR REPLACE INTO transitions VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (sweep.id, rfc3339(sweep.started_at), p.node, p.check, p.health.value, what, p.detail)
            for what, p in _problems(changes)
        ],
    )


def _problems(changes: Changes) -> Iterator[tuple[str, CheckProblem]]:
    yield from (("new", problem) for problem in changes.new)
    yield from (("worse", problem) for problem in changes.worse)
    yield from (("recovered", tracked.problem) for tracked in changes.recovered)
    yield from (("flapping", tracked.problem) for tracked in changes.flapping)


def _count(database: sqlite3.Connection, nodes: Iterable[NodeHealth]) -> None:
    """Add this sweep to the counters."""
    totals: dict[str, float] = {}
    for node in nodes:
        if node.report.outcome != "answered":
            name = f"brctl_transport_errors_total{{kind={json.dumps(node.report.outcome.value)}}}"
            totals[name] = totals.get(name, 0.0) + 1
        for result in node.report.results:
            if result.status == "timed-out":
                name = f"brctl_check_timeouts_total{{check={json.dumps(result.check)}}}"
                totals[name] = totals.get(name, 0.0) + 1
    database.executemany(
        "INSERT INTO totals VALUES (?, ?) "
        "ON CONFLICT(name) DO UPDATE SET value = value + excluded.value",
        list(totals.items()),
    )


def _forget(database: sqlite3.Connection, before: datetime) -> None:
    moment = rfc3339(before.astimezone(UTC))
    database.execute("DELETE FROM transitions WHERE at < ?", (moment,))
    database.execute("DELETE FROM sweeps WHERE at < ?", (moment,))
    for table in ("tracked", "told"):
        database.execute(
            f"DELETE FROM {table} WHERE recovered_at IS NOT NULL AND recovered_at < ?",  # noqa: S608
            (moment,),
        )
