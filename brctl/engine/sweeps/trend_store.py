"""Trends in the history database: written in every resolution at once, forgotten by age."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from brctl.engine.sweeps.history_database import database_path, open_history
from brctl.model.jobs.trends import (
    NO_TRENDS,
    TIERS,
    TREND_METRICS,
    Trends,
    TrendSample,
    TrendSeries,
    TrendTier,
)

BUCKETS_READ = 60
ENOUGH_SHARE = 0.5
"""The finest resolution is read that is filled so far; cron looks too seldom for the minute's."""

# Together in time: a minute of a whole fleet is a few pages, and what is too old is one range.
_ADD = (
    "INSERT INTO trend_points VALUES (?1, ?2, ?3, ?4, 1) "
    "ON CONFLICT (every_s, at, series) DO UPDATE SET looks = looks + 1, value = CASE ?5 "
    "WHEN 'mean' THEN (value * looks + ?4) / (looks + 1) "
    "WHEN 'highest' THEN MAX(value, ?4) ELSE ?4 END"
)


class TrendStore:
    """The trends of one context."""

    def __init__(self, state_dir: Path, context: str) -> None:
        self._state_dir, self._context = state_dir, context

    def add(self, at: datetime, samples: Iterable[TrendSample]) -> None:
        """Add what one look told; what has become too old goes."""
        rows = [sample for sample in samples if sample.metric in TREND_METRICS]
        if not rows:
            return
        with open_history(self._state_dir) as database:
            database.execute("BEGIN IMMEDIATE")
            ids = self._ids(database, rows)
            for tier in TIERS:
                bucket = _bucket(at, tier)
                database.executemany(
                    _ADD,
                    [
                        (tier.every_s, bucket, ids[s.subject, s.metric], s.value,
                         TREND_METRICS[s.metric].fold.value)
                        for s in rows
                    ],
                )  # fmt: skip
                _forget(database, tier, bucket)

    def read(self, subjects: Sequence[str], now: datetime) -> Trends:
        """The newest of these jobs and nodes; of a database that cannot be read, why."""
        path = database_path(self._state_dir)
        try:
            if not path.stat().st_size:
                return NO_TRENDS
            # Only to read: who may not write here may look.
            with closing(
                sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            ) as database:
                return self._read(database, subjects, now)
        except FileNotFoundError:
            return NO_TRENDS
        except (OSError, sqlite3.Error) as error:
            return Trends(TIERS[0].every_s, problem=f"{path}: {error}")

    def _read(self, database: sqlite3.Connection, subjects: Sequence[str], now: datetime) -> Trends:
        if not _has_trends(database):
            return NO_TRENDS
        query = (
            "SELECT id, subject, metric FROM trend_series "
            "WHERE context = ? AND subject IN (SELECT value FROM json_each(?))"
        )
        found = database.execute(query, (self._context, json.dumps(list(subjects)))).fetchall()
        series = {row[0]: (row[1], row[2]) for row in found if row[2] in TREND_METRICS}
        best = NO_TRENDS
        for tier in TIERS:
            trends = _of_tier(database, tier, series, now)
            if trends.series:
                best = trends
            if _filled_share(trends) >= ENOUGH_SHARE:
                break
        return best

    def _ids(
        self, database: sqlite3.Connection, rows: Sequence[TrendSample]
    ) -> Mapping[tuple[str, str], int]:
        database.executemany(
            "INSERT OR IGNORE INTO trend_series (context, subject, metric) VALUES (?, ?, ?)",
            [(self._context, sample.subject, sample.metric) for sample in rows],
        )
        query = "SELECT subject, metric, id FROM trend_series WHERE context = ?"
        return {(r[0], r[1]): r[2] for r in database.execute(query, (self._context,))}


def _bucket(at: datetime, tier: TrendTier) -> int:
    return int(at.timestamp()) // tier.every_s * tier.every_s


def _forget(database: sqlite3.Connection, tier: TrendTier, bucket: int) -> None:
    """By the newest bucket; one far ahead of all others may come of a clock set wrong."""
    newest = "SELECT MAX(at) FROM trend_points WHERE every_s = ? AND at < ?"
    (before,) = database.execute(newest, (tier.every_s, bucket)).fetchone()
    if before is None or bucket - before > tier.kept_s:
        return
    old = database.execute(
        "DELETE FROM trend_points WHERE every_s = ? AND at < ?",
        (tier.every_s, bucket - tier.kept_s),
    )
    # A node or job of which the coarsest resolution knows nothing is gone.
    if old.rowcount and tier is TIERS[-1]:
        database.execute(
            "DELETE FROM trend_series WHERE id NOT IN (SELECT series FROM trend_points)"
        )


def _has_trends(database: sqlite3.Connection) -> bool:
    """An index of an older version has none until something is written to it."""
    query = "SELECT COUNT(*) FROM sqlite_master WHERE name IN ('trend_series', 'trend_points')"
    return bool(database.execute(query).fetchone()[0] == 2)


def _of_tier(
    database: sqlite3.Connection,
    tier: TrendTier,
    series: Mapping[int, tuple[str, str]],
    now: datetime,
) -> Trends:
    newest = _bucket(now, tier)
    oldest = newest - (BUCKETS_READ - 1) * tier.every_s
    query = (
        "SELECT series, at, value FROM trend_points WHERE every_s = ? AND at BETWEEN ? AND ? "
        "AND series IN (SELECT value FROM json_each(?))"
    )
    values: dict[int, list[float | None]] = {}
    arguments = (tier.every_s, oldest, newest, json.dumps(list(series)))
    for number, at, value in database.execute(query, arguments):
        row = values.setdefault(number, [None] * BUCKETS_READ)
        row[(at - oldest) // tier.every_s] = value
    if all(row[-1] is None for row in values.values()):
        # The bucket that goes on has not had its look yet: that is no gap.
        values = {number: row[:-1] for number, row in values.items()}
        newest -= tier.every_s
    until = datetime.fromtimestamp(newest + tier.every_s, UTC)
    found = (TrendSeries(*series[number], tuple(row)) for number, row in values.items())
    return Trends(tier.every_s, until, tuple(sorted(found, key=lambda s: (s.metric, s.subject))))


def _filled_share(trends: Trends) -> float:
    """How much of the time since its first number is known, by the series that knows most."""
    return max((_share(series.values) for series in trends.series), default=0.0)


def _share(values: Sequence[float | None]) -> float:
    first = next((number for number, value in enumerate(values) if value is not None), None)
    if first is None:
        return 0.0
    known = sum(value is not None for value in values)
    return known / (len(values) - first)
