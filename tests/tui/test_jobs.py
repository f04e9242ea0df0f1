"""Jobs are looked at, and one that stands is never hidden behind healthy nodes."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from brctl.engine.job.look_store import keep_look
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.jobs.trends import TrendSample
from brctl.tui.address import Address
from brctl.tui.once import once_text
from brctl.tui.rows.job_rows import job_list, job_rows, rates, worst_first
from brctl.tui.screens.dialogs import ConfirmDialog
from brctl.tui.session.engine_client import JobSeen
from tests.fakes.run_context import NOON, example_job
from tests.tui.conftest import engine_of, settled, shows, until
from tests.tui.screen_text import screen_text
from tests.tui.site import make_site, site_app, site_verdict

SIZE = (110, 34)
LOOK = JobLook("demo", NOON, JobState.PROGRESSING, 40, 0.4, 0.31, 0.11)
STALL = JobLook("demo", NOON, JobState.STALLED, 40, 123.0)
WINDOWS = tuple(StepWindow(10 * n, 10, 0.1 + 0.02 * n, 0.01, loss=9.0 - n) for n in range(8))


def status(*, stalled: bool = True) -> JobStatus:
    """Four ranks of which one is gone, and eight windows of steps behind them."""
    job = example_job()
    ranks = tuple(
        RankView(n, node, n != 2, step=40 - (n == 3), phase="all_reduce", phase_age_s=7.0)
        for n, node in enumerate(job.nodes)
    )
    return JobStatus(job, ranks, 40, 123.0, stalled, (), StepHistory(WINDOWS, WINDOWS[-1]))


async def test_a_job_that_stands_is_in_the_header_and_needs_attention(tmp_path: Path) -> None:
    """The header counts it, the list says since when and at which step, enter opens its page."""
    settings = make_site(tmp_path)
    app = site_app(tmp_path, settings, Address(), look_every_s=15.0)
    engine_of(app).seen = (JobSeen(STALL, status()),)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await shows(app, "jobs 1: 1 STALLED")
        await shows(app, "X job demo stands still for 2m03")
        await pilot.press("tab", "g", "enter")
        await shows(app, "STALLED  40")
        await shows(app, "[7 Jobs]")
        await shows(app, "step time")


async def test_nothing_is_not_said_of_a_fleet_whose_job_stands(tmp_path: Path) -> None:
    """All nodes shown are well; the job is not, and `n` leads to it."""
    settings = make_site(tmp_path)
    keep_look(settings.state_dir, settings.context, STALL)
    app = site_app(tmp_path, settings, Address(filter="n1"))
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await shows(app, "job demo stands still")
        assert "nothing: every node" not in screen_text(app)
        await pilot.press("n")
        await shows(app, "[7 Jobs]")


def test_a_job_nobody_looked_at_is_not_called_well(tmp_path: Path) -> None:
    """Header and list say so, as bare brctl does."""
    facts = site_app(tmp_path, make_site(tmp_path)).reader.read()
    text = once_text(facts, Address(filter="n1"), width=100, ascii_only=False)
    assert "jobs 1: 1 not looked at" in text
    assert "nothing: every node" not in text
    assert "demo  not looked at  -" in once_text(
        facts, Address("jobs"), width=100, ascii_only=False
    )


def test_a_slow_job_stands_beside_its_usual_rate(tmp_path: Path) -> None:
    """Step, age, seconds a step and the usual ones are in one line; the newest look counts."""
    settings = make_site(tmp_path)
    keep_look(settings.state_dir, settings.context, replace(STALL, at=NOON - timedelta(hours=1)))
    app = site_app(tmp_path, settings)
    app.reader.add_job_looks([JobSeen(LOOK, status(stalled=False))])
    facts = app.reader.read()
    line = job_list(facts, NOON + timedelta(seconds=12))[1].text
    assert line.split() == ["demo", "progressing", "40", "0.4", "s", "0.31", "0.11",
                            "12.0", "s", "ago", "4", "-"]  # fmt: skip


def test_the_page_of_a_job_shows_trends_and_the_ranks_behind_first(tmp_path: Path) -> None:
    """Step times climb and losses fall from left to right; the rank that is gone comes first."""
    app = site_app(tmp_path, make_site(tmp_path))
    app.reader.add_job_looks([JobSeen(STALL, status())])
    rows = [line.text for line in job_rows(example_job(), app.reader.read(), 100, NOON)]
    page = "\n".join(rows)
    assert "step time  ▁▂▃▄▅▆▇██  0.24 s   from 0.1 to 0.24" in page
    assert "loss       █▇▆▅▄▃▂▁▁  2   from 2 to 9" in page
    first = rows[next(i for i, text in enumerate(rows) if text.startswith("RANK")) + 1]
    assert first.split()[:3] == ["2", "n3", "gone"]
    assert [view.rank for view in worst_first(status().ranks)] == [2, 3, 0, 1]


def test_the_page_of_a_job_draws_what_was_kept_of_it_and_says_what_was_not(tmp_path: Path) -> None:
    """A minute without a look is a gap, on screen and in the text of --once."""
    settings = make_site(tmp_path)
    store = TrendStore(settings.state_dir, settings.context)
    for minute, heat in ((-3, 40.0), (-1, 60.0), (0, 80.0)):
        at = NOON + timedelta(minutes=minute)
        store.add(at, [TrendSample("n3", "temperature_c", heat)])
    facts = site_app(tmp_path, settings).reader.read()
    text = once_text(facts, Address("jobs", "demo"), width=120, ascii_only=False)
    line = next(line for line in text.splitlines() if line.startswith("temperature"))
    assert line.split() == ["temperature", "80", "C", "40", "80", "n3", "▁·▅█"]
    assert "not measured on n[1-2,4]: temperature" in text
    in_ascii = once_text(facts, Address("jobs", "demo"), width=120, ascii_only=True)
    assert "_.#" in in_ascii


def test_the_rate_between_looks_is_zero_while_a_job_stands_and_a_gap_over_a_restart() -> None:
    """A job without a step file has a trend as well."""
    steps = (10, 20, 20, 5, None)
    past = [replace(LOOK, at=NOON + timedelta(seconds=10 * n), step=s) for n, s in enumerate(steps)]
    assert rates(past) == [1.0, 0.0, None, None]


async def test_a_waiting_run_is_answered_from_the_fleet(tmp_path: Path) -> None:
    """Header and list name it; A opens the dialog of that run wherever the cursor stands."""
    settings = make_site(tmp_path, verdict=site_verdict())
    app = site_app(tmp_path, settings, Address())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        engine = engine_of(app)
        await engine.start_unapproved(await engine.propose("V-1"))
        await shows(app, "R-0001 WAITS")
        await shows(app, "runs 0, 1 waiting")
        await pilot.press("A")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the dialog")
        await shows(app, "brctl play approve R-0001")
        await pilot.press("escape", "2", "D")
        await shows(app, "brctl play deny R-0001")


async def test_after_a_swap_the_job_is_asked_where_it_runs_now(tmp_path: Path) -> None:
    """The terminal stays open while another process moves ranks; it must not ask the old node."""
    app = site_app(tmp_path, make_site(tmp_path))
    engine = engine_of(app)
    (before,) = await engine.look_at_jobs()
    assert before.status.silent == ("n1", "n2", "n3", "n4")
    await engine.context.backend.replace_nodes(example_job(), {"n3": "s1"})
    (after,) = await engine.look_at_jobs()
    assert after.look.state is JobState.UNKNOWN
    assert after.status.silent == ("n1", "n2", "s1", "n4")
    await engine.close()
