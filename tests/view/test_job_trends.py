"""Health over time as people read it: gaps are drawn, unknown is said, the worst node is first."""

from dataclasses import replace
from datetime import UTC, datetime

from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.trends import NO_TRENDS, Trends, TrendSeries
from brctl.view.job.job import job_page
from brctl.view.job.trends import trends_document, trends_text
from tests.fakes.documents import check_page
from tests.fakes.run_context import example_job

JOB = example_job()
UNTIL = datetime(2026, 7, 5, 12, 6, tzinfo=UTC)


def trends(*series: TrendSeries) -> Trends:
    return Trends(60, UNTIL, series)


STEPS = TrendSeries("demo", "step_s", (None, None, 0.5, None, 1.0, 2.0))
HEATS = tuple(
    TrendSeries(f"n{number}", "temperature_c", (None, None, None, 40.0, 41.0, 40.0 + number))
    for number in range(1, 5)
)
ERRORS = TrendSeries("n2", "ecc_errors", (None, None, 7.0, 7.0, 9.0, 9.0))


def test_a_gap_is_drawn_as_a_gap_and_the_time_before_the_job_is_not_drawn() -> None:
    lines = trends_text(JOB, trends(STEPS))[0].splitlines()
    assert lines[0].endswith("LAST 4m00, 1m00 A CHARACTER, · UNKNOWN")
    assert lines[1].split() == ["step", "time", "2", "s", "0.5", "2", "-", "▁·▃█"]


def test_of_nodes_the_hottest_three_are_shown_and_how_many_there_are() -> None:
    lines = trends_text(JOB, trends(*HEATS))[0].splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["temperature", "43", "42"]
    assert "44 C  40   44    n4" in lines[1]
    assert "n2 (of 4)" in lines[3]


def test_a_counter_says_how_much_it_grew() -> None:
    line = trends_text(JOB, trends(ERRORS))[0].splitlines()[1]
    assert line.split() == ["ECC", "errors", "+2", "0", "2", "n2", "▁█▁"]


def test_what_was_never_read_is_said_for_the_nodes_it_is_missing_of() -> None:
    notes = trends_text(JOB, trends(STEPS, *HEATS[:1], ERRORS))[1:]
    assert notes == [
        "not told: steps/s, tokens/s, loss, grad norm",
        "not measured on n[2-4]: temperature",
        "not measured on n[1-4]: power, link errors",
        "not measured on n[1,3-4]: ECC errors",
    ]


def test_nothing_kept_is_unknown_and_names_what_keeps_it() -> None:
    (line,) = trends_text(JOB, NO_TRENDS)
    assert line.startswith("health over time: UNKNOWN: nothing is kept yet; `brctl watch`")
    (line,) = trends_text(JOB, replace(NO_TRENDS, problem="/x: disk \x1b[31merror"))
    assert line == "health over time: UNKNOWN: /x: disk \\x1b[31merror"


def test_the_document_of_job_show_holds_the_jobs_series_and_the_range_of_each_node() -> None:
    status = JobStatus(JOB, (), 7, 0.1, False, ())
    page = job_page(JOB, status, trends(STEPS, ERRORS))
    check_page(page, "lab")
    document = trends_document(JOB, trends(STEPS, ERRORS))
    assert document["job"] == {"step_s": [None, None, 0.5, None, 1.0, 2.0]}
    assert document["nodes"] == [
        {"node": "n2", "metric": "ecc_errors", "newest": 0.0, "lowest": 0.0, "highest": 2.0,
         "sum": 2.0}
    ]  # fmt: skip
    check_page(job_page(JOB, status), "lab")
