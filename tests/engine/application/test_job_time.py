"""The report of a job's time: from records to a page whose books sum to its wall time."""

import json
from dataclasses import replace

from brctl.engine.application.job_time import report_of
from brctl.engine.job.time_records import TimeRecords, read_steps
from brctl.model.jobs.job_time import US, DoneStep
from brctl.view.job.ettr import ettr_page
from brctl.view.job.ettr_metrics import ettr_totals
from brctl.view.job.incidents import incidents_page
from tests.evidence.job.test_time_books import INCIDENT, example, steps

RECORDS = TimeRecords(0, tuple(example()), (INCIDENT,), ())
REPORT = report_of("llm", RECORDS, 7195 * US, nodes=1024)


def test_the_books_of_the_page_sum_to_the_wall_time() -> None:
    body = ettr_page(report_of("llm", RECORDS, 7195 * US)).body
    books, wall_s = body["books_seconds"], body["wall_seconds"]
    assert isinstance(books, dict)
    assert sum(books.values()) == wall_s == 7195
    assert round(float(str(body["ettr"])), 4) == 0.9451
    assert body["causes_seconds"] == {"gpu-lost": 335}


def test_both_levers_are_priced_and_the_longer_part_is_worth_more() -> None:
    report = report_of("llm", RECORDS, 7195 * US)
    recovery, interval = report.levers.values()
    assert report.expected is not None
    assert recovery > interval > report.expected


def test_a_lever_is_worth_node_hours_and_the_failures_stand_beside_what_the_size_explains() -> None:
    page = ettr_page(report_of("llm", RECORDS, 7195 * US, nodes=1024))
    assert page.body["mttf_seconds"] == 7195
    beside = page.body["mttf_expected_seconds"]
    assert isinstance(beside, dict)
    assert round(beside["RSC-1"] / 3600, 1) == 3.6
    worth = page.body["levers_node_hours_per_day"]
    assert isinstance(worth, dict)
    report = report_of("llm", RECORDS, 7195 * US, nodes=1024)
    for name, share in report.levers.items():
        assert worth[name] == (share - (report.expected or 0)) * 24 * 1024
    assert "1024 nodes expect 3h36 by RSC-1" in page.text
    nothing_failed = report_of("llm", TimeRecords(0, tuple(steps(1, 0, 100)), (), ()), 100 * US, 8)
    assert "MTTF none in this time; 8 nodes expect" in ettr_page(nothing_failed).text


def test_what_an_on_call_person_asks_first_is_on_the_page() -> None:
    """The last hour, the worst one, what each cause lost, a curve that ends in the whole."""
    report, page = REPORT, ettr_page(REPORT)
    assert "last hour 100.00 %; lowest 90.69 % to 1970-01-01 01:02:27Z" in page.text
    assert "gpu-lost  5m35  4.66 %" in page.text
    assert report.cumulative[-1] == (7195 * US, report.now.ettr, report.now.ettr)
    at_fault = min(report.cumulative, key=lambda row: abs(row[0] - 1005 * US))
    assert at_fault[2] > at_fault[1]
    for words in ("as known now", "as known then", "Cumulative", "Lost by cause"):
        assert words in page.html
    young = ettr_page(report_of("llm", RECORDS, 1005 * US)).text
    assert "last hour" not in young


def test_the_accounts_are_metrics_and_what_nobody_recorded_is_none_of_them() -> None:
    """Where the time went sums to all of it; a phase without a record is left out."""
    told = ettr_totals(REPORT, "prod")
    here = 'context="prod",job="llm"'
    assert sum(v for k, v in told.items() if k.startswith("brctl_job_time_seconds")) == 7195
    assert told[f'brctl_job_ettr_ratio{{{here},window="all"}}'] == 0.945101
    assert told[f'brctl_job_ettr_ratio{{{here},window="hour"}}'] == 1
    assert told[f'brctl_job_lost_seconds{{{here},cause="gpu-lost"}}'] == 335
    assert told[f'brctl_job_incident_seconds{{{here},phase="redone"}}'] == 145
    assert not any('phase="load"' in series for series in told)
    quiet = TimeRecords(0, tuple(steps(1, 0, 100)), (), ())
    calm = ettr_totals(report_of("llm", quiet, 100 * US), "prod")
    assert calm[f"brctl_job_incidents{{{here}}}"] == 0
    assert not any(series.startswith("brctl_job_mttf") for series in calm)


def test_no_ratio_is_written_while_the_steps_of_late_cannot_be_read() -> None:
    """The job may train: an hour of unknown time would be told as an hour without a step."""
    unread = report_of("llm", replace(RECORDS, unread=True), 12_000 * US)
    assert unread.hours[-1][1] == 0
    told = ettr_totals(unread, "prod")
    assert not any(series.startswith("brctl_job_ettr_ratio") for series in told)
    assert told['brctl_job_records_unread{context="prod",job="llm"}'] == 1
    assert ettr_totals(REPORT, "prod")['brctl_job_records_unread{context="prod",job="llm"}'] == 0


def test_an_hour_before_faster_steps_was_productive_as_known_then() -> None:
    """What is degraded now was the usual step then."""
    faster = [DoneStep(101 + n, (1000 + 5 * (n + 1)) * US, 5 * US) for n in range(300)]
    records = TimeRecords(0, (*steps(1, 0, 1000), *faster), (), ())
    first = report_of("llm", records, 2500 * US).cumulative[9]
    assert first[0] < 1000 * US
    assert first[1] < 0.6 < 0.97 < first[2]


def test_an_hour_is_known_better_later_than_then() -> None:
    """The hour of the fault counts its steps as productive until they are done again."""
    report = report_of("llm", RECORDS, 7195 * US)
    at_fault = min(report.hours, key=lambda row: abs(row[0] - 1005 * US))
    assert at_fault[2] > at_fault[1]


def test_the_page_is_one_file_without_script_or_network() -> None:
    page = ettr_page(report_of("llm<script>", RECORDS, 7195 * US))
    assert "<svg" in page.html
    assert "<script" not in page.html
    assert "http" not in page.html.replace("http-equiv", "")


def test_each_day_has_a_bar_and_the_bad_one_says_what_took_most() -> None:
    """Days end at midnight UTC; the parts sum to the whole."""
    shift_us = 86_400 * US - 3000 * US
    moved = tuple(replace(step, end_us=step.end_us + shift_us) for step in RECORDS.steps)
    records = TimeRecords(shift_us, moved, (), ())
    report = report_of("llm", records, shift_us + 7195 * US)
    assert [day.to_us for day in report.days] == [86_400 * US, shift_us + 7195 * US]
    for book, us in report.now.books_us.items():
        assert sum(day.books_us.get(book, 0) for day in report.days) == us
    html = ettr_page(report).html
    assert "1970-01-01</text>" in html
    assert "1970-01-02</text>" in html
    assert "most lost: " in html


def test_a_step_file_of_nonsense_gives_the_steps_that_make_sense() -> None:
    rows: list[object] = [
        {"step": 1, "at": 100.5, "seconds": 0.5}, {"step": "2", "at": 3, "seconds": 1},
        {"step": 3, "at": 1e300, "seconds": 1}, {"step": 4, "at": 101, "seconds": -1}, [],
    ]  # fmt: skip
    data = b"\n".join(json.dumps(row).encode() for row in rows) + b'\n{"step": 5, "at": 1'
    assert [(s.step, s.begin_us, s.end_us) for s in read_steps(data)] == [
        (1, 100 * US, 100 * US + US // 2)
    ]


def test_incidents_say_what_each_part_of_the_way_back_took() -> None:
    dated = replace(INCIDENT, nodes=("n7", "n8"), run="R-0001")
    page = incidents_page(report_of("llm", replace(RECORDS, incidents=(dated,)), 7195 * US))
    (row,) = page.rows
    took = {key: value for key, value in row.items() if key.endswith("_seconds")}
    assert took == {
        "detect_seconds": 10, "locate_seconds": 60, "wait_human_seconds": 0,
        "fail_over_seconds": 120, "load_seconds": None, "redone_seconds": 145, "lost_seconds": 335,
    }  # fmt: skip
    assert (row["nodes"], row["run"], row["stands"]) == (["n7", "n8"], "R-0001", False)
    assert "n[7-8]" in page.text
    assert page.next == ()


def test_an_incident_that_nobody_watched_has_no_time_to_locate() -> None:
    """The verdict is all that is known, and the job stands; what was not seen is no zero."""
    dark = replace(INCIDENT, fault_us=None, suspected_us=None)
    records = replace(RECORDS, steps=tuple(steps(1, 60, 1000)), incidents=(dark,))
    page = incidents_page(report_of("llm", records, 1200 * US))
    (row,) = page.rows
    assert (row["detect_seconds"], row["locate_seconds"], row["stands"]) == (65, None, True)
    assert page.next == ("brctl incident show V-7K3",)
    none = incidents_page(report_of("llm", replace(RECORDS, incidents=()), 7195 * US))
    assert none.text == "llm  no incident since 1970-01-01 00:00:00Z"
