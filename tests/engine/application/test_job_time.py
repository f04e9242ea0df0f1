"""The report of a job's time: from records to a page whose books sum to its wall time."""

import json

from brctl.engine.application.job_time import report_of
from brctl.engine.job.time_records import TimeRecords, read_steps
from brctl.model.jobs.job_time import US
from brctl.view.job.ettr import ettr_page
from tests.evidence.job.test_time_books import INCIDENT, example

RECORDS = TimeRecords(0, tuple(example()), (INCIDENT,), ())


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


def test_a_step_file_of_nonsense_gives_the_steps_that_make_sense() -> None:
    rows: list[object] = [
        {"step": 1, "at": 100.5, "seconds": 0.5}, {"step": "2", "at": 3, "seconds": 1},
        {"step": 3, "at": 1e300, "seconds": 1}, {"step": 4, "at": 101, "seconds": -1}, [],
    ]  # fmt: skip
    data = b"\n".join(json.dumps(row).encode() for row in rows) + b'\n{"step": 5, "at": 1'
    assert [(s.step, s.begin_us, s.end_us) for s in read_steps(data)] == [
        (1, 100 * US, 100 * US + US // 2)
    ]
