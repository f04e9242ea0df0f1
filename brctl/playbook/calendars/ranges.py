"""Ranges of a calendar as people write them: `mon-fri 09:00-17:00`, `2026-12-20..2027-01-04`.

Times are those of a wall clock in one time zone, so a range keeps its hours when summer time ends.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from brctl.model.runs.calendar import Span

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY = timedelta(days=1)
_WEEKLY = re.compile(r"(?:(\S+) +)?(\d\d:\d\d) *- *(\d\d:\d\d)")
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))? *\.\. *(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?")
_HOW = "write `mon-fri 09:00-17:00`, `22:00-06:00` or `2026-12-20..2027-01-04`"


@dataclass(frozen=True, slots=True)
class WeeklyRange:
    """The same hours on some days of the week; hours that end before they begin pass midnight."""

    days: frozenset[int]
    start: time
    hours: timedelta


@dataclass(frozen=True, slots=True)
class DatedRange:
    """From one date and time to another, once."""

    start: datetime
    end: datetime


Range = WeeklyRange | DatedRange


def parse_range(text: str) -> Range:
    """The range a text means.

    Raises:
        ValueError: It means none; says how ranges are written.
    """
    dated = _DATED.fullmatch(text.strip())
    if dated is not None:
        return _dated(text, *dated.groups())
    weekly = _WEEKLY.fullmatch(text.strip())
    if weekly is None:
        raise ValueError(f"{text!r} is no range; {_HOW}")
    start, end = _minutes(weekly[2]), _minutes(weekly[3])
    if start == end or start == 24 * 60:
        raise ValueError(f"{text!r} is empty; a whole day is 00:00-24:00")
    length = timedelta(minutes=end - start if end > start else end - start + 24 * 60)
    return WeeklyRange(_days(weekly[1]), time(start // 60, start % 60), length)


def _dated(text: str, first: str, at: str | None, last: str, until: str | None) -> DatedRange:
    """Without a time the last day counts whole, as people mean it."""
    start = _day(first) + timedelta(minutes=_minutes(at or "00:00"))
    end = _day(last) + timedelta(minutes=_minutes(until or "24:00"))
    if end <= start:
        raise ValueError(f"{text!r} ends before it begins")
    return DatedRange(start, end)


def _day(text: str) -> datetime:
    return datetime.combine(date.fromisoformat(text), time())


def _minutes(text: str) -> int:
    hour, minute = int(text[:2]), int(text[3:])
    if minute > 59 or hour * 60 + minute > 24 * 60:
        raise ValueError(f"{text!r} is no time of day")
    return hour * 60 + minute


def _days(text: str | None) -> frozenset[int]:
    if text is None or text == "daily":
        return frozenset(range(7))
    found: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.partition("-")
        unknown = [day for day in (first, last or first) if day not in DAYS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no day; days are {' '.join(DAYS)}; {_HOW}")
        start, end = DAYS.index(first), DAYS.index(last or first)
        found |= {day % 7 for day in range(start, end + 1 if end >= start else end + 8)}
    return frozenset(found)


def spans_of(rule: Range, zone: tzinfo, since: datetime, until: datetime) -> Iterator[Span]:
    """The spans of a range that touch the time between two moments."""
    if isinstance(rule, DatedRange):
        yield Span(in_utc(rule.start, zone), in_utc(rule.end, zone))
        return
    day, last = since.astimezone(zone).date() - DAY, until.astimezone(zone).date()
    while day <= last:
        if day.weekday() in rule.days:
            start = datetime.combine(day, rule.start)
            yield Span(in_utc(start, zone), in_utc(start + rule.hours, zone))
        day += DAY


def in_utc(wall: datetime, zone: tzinfo) -> datetime:
    """The moment at which a wall clock in a zone shows this."""
    return wall.replace(tzinfo=zone).astimezone(UTC)
