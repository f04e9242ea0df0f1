"""The report of a job's time: from records to a page whose books sum to its wall time."""

import json
from dataclasses import replace

from brctl.engine.application.job_time import report_of
from brctl.engine.job.time_records import TimeRecords, read_steps
from brctl.model.jobs.job_time import US
from brctl.view.job.ettr import ettr_page
from brctl.view.job.incidents import incidents_page
from tests.evidence.job.test_time_books import INCIDENT, example, steps

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
