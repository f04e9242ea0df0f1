"""Windows keep their wall-clock hours, and a calendar that is half understood is no calendar."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.model.runs.calendar import Span, merged
from brctl.playbook.calendars.ical import read_spans
from brctl.playbook.calendars.ranges import parse_range, spans_of
from brctl.playbook.calendars.repeats import parse_repeat, starts

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def of_range(text: str, since: str, until: str, zone: tzinfo = BERLIN) -> list[str]:
    spans = merged(spans_of(parse_range(text), zone, at(since), at(until)))
    return [f"{s.start_at:%m-%dT%H:%M}/{s.end_at:%m-%dT%H:%M}" for s in spans]


def test_hours_are_those_of_the_wall_clock_when_summer_time_ends() -> None:
    """Clocks went back on 25 October 2026: nine o'clock came an hour later in UTC."""
    assert of_range("fri,mon 09:00-17:00", "2026-10-23", "2026-10-27") == [
        "10-23T07:00/10-23T15:00",
        "10-26T08:00/10-26T16:00",
    ]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("22:00-06:00", ["07-04T22:00/07-05T06:00", "07-05T22:00/07-06T06:00"]),
        ("sat-mon 00:00-24:00", ["07-04T00:00/07-06T00:00"]),
        ("2026-07-05..2026-07-06", ["07-05T00:00/07-07T00:00"]),
        ("2026-07-05 08:30..2026-07-05 09:00", ["07-05T08:30/07-05T09:00"]),
        ("daily 00:00-00:30", ["07-04T00:00/07-04T00:30", "07-05T00:00/07-05T00:30"]),
    ],
)
def test_ranges_as_people_write_them(text: str, spans: list[str]) -> None:
    """Past midnight, around the week's end, whole days, and once."""
    assert of_range(text, "2026-07-05T01:00", "2026-07-05T23:59", UTC) == spans


@pytest.mark.parametrize(
    "text",
    ["mon-fri", "9-17", "mon 09:00-09:00", "fryday 09:00-10:00", "09:00-25:00", "09:70-10:00",
     "2026-07-06..2026-07-05", "2026-13-01..2026-13-02", "mon 24:00-06:00"],
)  # fmt: skip
def test_a_range_that_means_nothing_is_an_error(text: str) -> None:
    """Never an empty window by a slip of the finger."""
    with pytest.raises(ValueError, match=r"."):
        parse_range(text)


ICAL = """\
BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:a
SUMMARY:freeze
{lines}
END:VEVENT
{more}END:VCALENDAR
"""


def zones(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as exc:
        raise ValueError(f"no time zone {name!r}") from exc


def of_ical(lines: str, more: str = "", zone: tzinfo | None = UTC) -> list[str]:
    text = ICAL.format(lines=lines, more=more).replace("\n", "\r\n")
    spans = merged(read_spans(text, zone, zones, at("2026-07-01"), at("2026-09-01")))
    return [f"{s.start_at:%m-%dT%H:%M}/{s.end_at:%m-%dT%H:%M}" for s in spans]


TUESDAYS = "DTSTART;TZID=Europe/Berlin:20260602T090000\nDURATION:PT2H\nRRULE:FREQ={rule}"


@pytest.mark.parametrize(
    ("lines", "spans"),
    [
        ("DTSTART:20260710T080000Z\nDTEND:20260711T080000Z", ["07-10T08:00/07-11T08:00"]),
        ("DTSTART;VALUE=DATE:20260710\nDTEND;VALUE=DATE:20260712", ["07-10T00:00/07-12T00:00"]),
        ("DTSTART;VALUE=DATE:20260710", ["07-10T00:00/07-11T00:00"]),
        ("DTSTART:20260710T080000Z\nDTEND:20260711T080000Z\nSTATUS:CANCELLED", []),
        ("DTSTART:20260710T08\n 0000Z\nDURATION:P1DT1H", ["07-10T08:00/07-11T09:00"]),
        (TUESDAYS.format(rule="WEEKLY;INTERVAL=2;UNTIL=20260720T000000Z"),
         ["07-14T07:00/07-14T09:00"]),
        (TUESDAYS.format(rule="MONTHLY;BYDAY=2TU,-1FR"),
         ["07-14T07:00/07-14T09:00", "07-31T07:00/07-31T09:00", "08-11T07:00/08-11T09:00",
          "08-28T07:00/08-28T09:00"]),
        (TUESDAYS.format(rule="DAILY;COUNT=31\nEXDATE;TZID=Europe/Berlin:20260701T090000"),
         ["07-02T07:00/07-02T09:00"]),
        (TUESDAYS.format(rule="MONTHLY;BYMONTHDAY=31"),
         ["07-31T07:00/07-31T09:00", "08-31T07:00/08-31T09:00"]),
        ("DTSTART:20200731T080000Z\nDURATION:PT1H\nRRULE:FREQ=YEARLY", ["07-31T08:00/07-31T09:00"]),
    ],
)  # fmt: skip
def test_events_as_calendars_write_them(lines: str, spans: list[str]) -> None:
    """Zones, whole days, repeats and exceptions."""
    assert of_ical(lines) == spans


def test_a_moved_instance_stands_in_for_its_own_and_a_cancelled_one_for_none() -> None:
    """RECURRENCE-ID names the instance by the moment it would have begun."""
    moved = (
        "BEGIN:VEVENT\nUID:a\nRECURRENCE-ID:20260714T070000Z\n"
        "DTSTART:20260715T100000Z\nDURATION:PT1H\nEND:VEVENT\n"
        "BEGIN:VEVENT\nUID:a\nRECURRENCE-ID:20260721T070000Z\nSTATUS:CANCELLED\n"
        "DTSTART:20260721T070000Z\nDURATION:PT1H\nEND:VEVENT\n"
    )
    lines = TUESDAYS.format(rule="WEEKLY;UNTIL=20260728T235959Z")
    assert of_ical(lines, moved) == [
        "07-07T07:00/07-07T09:00",
        "07-15T10:00/07-15T11:00",
        "07-28T07:00/07-28T09:00",
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("DTSTART:20260710T080000", "line 6: DTSTART has no time zone"),
        ("DTSTART;TZID=Mars/Base:20260710T080000", "line 6: DTSTART: no time zone 'Mars/Base'"),
        ("DTSTART:tomorrow", "line 6"),
        ("SUMMARY:x", "line 3: an event without DTSTART"),
        ("DTSTART:20260710T080000Z\nRRULE:FREQ=HOURLY", "FREQ=HOURLY is not understood"),
        ("DTSTART:20260710T080000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=20", "BYWEEKNO"),
        ("DTSTART:20260710T080000Z\nRRULE:FREQ=DAILY;BYDAY=MO", "BYDAY with FREQ=DAILY"),
        ("DTSTART:20260710T080000Z\nRDATE:20260711T080000Z", "RDATE is not understood"),
        ("DTSTART:20260710T080000Z\nDTEND:20260709T080000Z", "ends before it begins"),
        ("DTSTART:20260710T080000Z\nnonsense", "no `:`"),
        ("DTSTART:20260710T080000Z\nEND:VALARM", "closes nothing"),
    ],
)
def test_what_is_not_understood_is_never_left_out(lines: str, expected: str) -> None:
    """Half a calendar would open a window nobody meant, or end a freeze early."""
    with pytest.raises(ValueError, match=r".") as caught:
        of_ical(lines, zone=None)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    ["FREQ=MONTHLY;BYMONTHDAY=32", "FREQ=MONTHLY;BYMONTHDAY=0", "FREQ=MONTHLY;BYMONTHDAY=-32",
     "FREQ=MONTHLY;BYDAY=6MO", "FREQ=DAILY;INTERVAL=0", "FREQ=DAILY;INTERVAL=" + "9" * 5000,
     "FREQ=DAILY;COUNT=0"],
)  # fmt: skip
def test_a_rule_that_can_mean_no_day_is_an_error_and_not_a_search(rule: str) -> None:
    """A megabyte of such events took an hour: each was looked for until the year 9990."""
    with pytest.raises(ValueError, match=r"is not between|is no day"):
        of_ical(f"DTSTART:20260701T090000Z\nDTEND:20260701T170000Z\nRRULE:{rule}")


def test_a_rule_that_never_meets_a_day_is_given_up_soon() -> None:
    """30 February: no instance, after a look at few months; 29 February is found over a century."""
    first = datetime(2024, 2, 28)  # noqa: DTZ001 - a wall clock
    monthly = parse_repeat("FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=30", UTC)
    assert list(starts(first, monthly)) == []
    leap = starts(first, parse_repeat("FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=29", UTC))
    assert [next(leap).year for _ in range(25)] == [
        year for year in range(2024, 2130, 4) if year != 2100
    ][:25]


def test_an_event_that_repeats_too_often_is_an_error_and_not_half_an_event() -> None:
    """Daily since 1800: left out behind the limit, its freeze of today would open."""
    with pytest.raises(ValueError, match="an event repeats too often to be followed"):
        of_ical("DTSTART:18000101T090000Z\nDTEND:18000101T170000Z\nRRULE:FREQ=DAILY")


def test_events_are_bounded_together() -> None:
    """Ten thousand events that began long ago are an error, not an hour of looking."""
    event = "BEGIN:VEVENT\nDTSTART:19500101T090000Z\nRRULE:FREQ=DAILY\nEND:VEVENT\n"
    text = f"BEGIN:VCALENDAR\n{event * 10_000}END:VCALENDAR\n"
    with pytest.raises(ValueError, match="repeat too often to be followed all"):
        read_spans(text, UTC, zones, at("2026-07-01"), at("2026-08-01"))


def test_a_file_that_was_cut_off_is_no_calendar() -> None:
    """A copy that ended half-way would hide the freezes of its second half."""
    whole = ICAL.format(lines="DTSTART:20260710T080000Z", more="")
    for text in ("", "<html>", whole.removesuffix("END:VCALENDAR\n")):
        with pytest.raises(ValueError, match=r"not an iCalendar file|cut off|no `:`"):
            read_spans(text, UTC, zones, at("2026-07-01"), at("2026-08-01"))


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), max_size=12))
def test_merging_keeps_every_moment_and_no_overlap(pairs: list[tuple[int, int]]) -> None:
    """A moment is inside afterwards exactly when it was inside one of them before."""
    start = at("2026-07-01")
    spans = [
        Span(start + timedelta(hours=a), start + timedelta(hours=a + length)) for a, length in pairs
    ]
    whole = merged(spans)
    for hour in range(140):
        moment = start + timedelta(hours=hour)
        inside = [s for s in whole if s.start_at <= moment < s.end_at]
        assert len(inside) == any(s.start_at <= moment < s.end_at for s in spans)
