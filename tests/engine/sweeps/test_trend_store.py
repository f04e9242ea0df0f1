"""Trends in the history database: gaps stay gaps, and what is old is coarser, then gone."""

import asyncio
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from brctl.engine.sweeps.cycle import record_sweep
from brctl.engine.sweeps.history_database import database_path, open_history
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.model.jobs.trends import TIERS, Trends, TrendSample
from tests.tui.site import SiteCluster, make_site, site_sweep

NOON = datetime(2026, 7, 5, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def kept(folder: Path, minutes: Iterable[int], metric: str = "step_s") -> TrendStore:
    """A store with one look at each of these minutes from noon; the value is the minute."""
    store = TrendStore(folder, "site")
    for minute in minutes:
        store.add(NOON + minute * MINUTE, [TrendSample("demo", metric, float(minute))])
    return store


def values(trends: Trends) -> list[float | None]:
    (series,) = trends.series
    return list(series.shown)


def test_minutes_in_which_nobody_looked_are_gaps(tmp_path: Path) -> None:
    """Neither zero nor what was before: between two looks nothing is known."""
    store = kept(tmp_path, [0, 1, 2, 5, 6, 7])
    found = store.read(["demo"], NOON + 7 * MINUTE)
    assert found.every_s == 60
    assert values(found)[-8:] == [0.0, 1.0, 2.0, None, None, 5.0, 6.0, 7.0]
    assert found.until == NOON.replace(second=0) + 8 * MINUTE


def test_one_look_by_a_clock_that_is_years_ahead_forgets_nothing(tmp_path: Path) -> None:
    store = kept(tmp_path, range(4))
    store.add(NOON + timedelta(days=4000), [TrendSample("demo", "step_s", 9.0)])
    assert values(store.read(["demo"], NOON + 3 * MINUTE))[-4:] == [0.0, 1.0, 2.0, 3.0]


def test_a_watcher_that_went_away_leaves_its_last_numbers_behind_a_gap(tmp_path: Path) -> None:
    found = kept(tmp_path, range(20)).read(["demo"], NOON + 25 * MINUTE)
    assert values(found)[-7:] == [18.0, 19.0, None, None, None, None, None]


def test_the_minute_that_goes_on_is_no_gap_before_its_look(tmp_path: Path) -> None:
    store = kept(tmp_path, range(4))
    found = store.read(["demo"], NOON + 4 * MINUTE)
    assert values(found)[-4:] == [0.0, 1.0, 2.0, 3.0]
    assert found.until == NOON.replace(second=0) + 4 * MINUTE


def test_cron_that_looks_every_five_minutes_is_read_at_ten(tmp_path: Path) -> None:
    """At one minute its looks would be four gaps in five."""
    found = kept(tmp_path, range(0, 60, 5)).read(["demo"], NOON + 56 * MINUTE)
    assert found.every_s == 600
    assert values(found)[-6:] == [2.5, 12.5, 22.5, 32.5, 42.5, 52.5]


def test_looks_of_one_bucket_are_folded_as_their_number_asks(tmp_path: Path) -> None:
    """A mean of rates, the highest temperature, the newest state of a counter."""
    store = TrendStore(tmp_path, "site")
    for metric in ("steps_per_s", "temperature_c", "ecc_errors"):
        for value in (4.0, 9.0, 5.0):
            store.add(NOON, [TrendSample("x", metric, value)])
    found = {s.metric: s.values[-1] for s in store.read(["x"], NOON).series}
    assert found == {"steps_per_s": 6.0, "temperature_c": 9.0, "ecc_errors": 5.0}


def test_a_counter_is_shown_as_its_growth_and_a_reset_as_unknown(tmp_path: Path) -> None:
    store = TrendStore(tmp_path, "site")
    for minute, count in enumerate([7.0, 7.0, 9.0, 0.0, 1.0]):
        store.add(NOON + minute * MINUTE, [TrendSample("n1", "ecc_errors", count)])
    found = store.read(["n1"], NOON + 4 * MINUTE)
    assert values(found)[-5:] == [None, 0.0, 2.0, None, 1.0]


def test_each_resolution_is_kept_for_its_time_and_no_longer(tmp_path: Path) -> None:
    """A series never holds more than 627 buckets; one that is all forgotten is gone whole."""
    store = TrendStore(tmp_path, "site")
    store.add(NOON - timedelta(days=40), [TrendSample("gone", "step_s", 1.0)])
    for hour in range(0, 26):
        store.add(NOON + timedelta(hours=hour), [TrendSample("demo", "step_s", 1.0)])
    with open_history(tmp_path) as database:
        query = "SELECT every_s, COUNT(*) FROM trend_points GROUP BY every_s ORDER BY every_s"
        counts = dict(database.execute(query).fetchall())
        names = database.execute("SELECT subject FROM trend_series").fetchall()
    assert counts == {60: 3, 600: 25, 7200: 13}
    assert names == [("demo",)]
    assert sum(tier.kept_s // tier.every_s + 1 for tier in TIERS) == 627


def test_contexts_that_share_a_state_folder_do_not_mix(tmp_path: Path) -> None:
    kept(tmp_path, range(3))
    assert TrendStore(tmp_path, "other").read(["demo"], NOON + 3 * MINUTE).series == ()


def test_reading_makes_nothing_and_says_what_cannot_be_read(tmp_path: Path) -> None:
    store = TrendStore(tmp_path, "site")
    assert store.read(["demo"], NOON).series == ()
    assert not database_path(tmp_path).exists()
    database_path(tmp_path).parent.mkdir()
    database_path(tmp_path).write_bytes(b"this is no database" * 100)
    assert "not a database" in store.read(["demo"], NOON).problem


def test_a_sweep_keeps_what_it_read_and_nothing_of_a_node_that_was_silent(tmp_path: Path) -> None:
    settings = make_site(tmp_path, swept=False)

    async def scenario() -> None:
        async with SiteCluster(tmp_path, settings).open() as controller:
            record_sweep(controller, site_sweep(), timedelta(days=1))

    asyncio.run(scenario())
    store = TrendStore(settings.state_dir, settings.context)
    found = store.read(["n1", "n3", "n4"], site_sweep().started_at)
    assert {(s.subject, s.metric, s.values[-1]) for s in found.series} == {
        ("n1", "temperature_c", 41.0), ("n3", "temperature_c", 41.0),
    }  # fmt: skip


def test_an_index_of_an_older_version_has_no_trends(tmp_path: Path) -> None:
    database_path(tmp_path).parent.mkdir()
    with sqlite3.connect(database_path(tmp_path)) as database:
        database.execute("CREATE TABLE sweeps (id TEXT)")
    database.close()
    assert TrendStore(tmp_path, "site").read(["demo"], NOON).problem == ""
