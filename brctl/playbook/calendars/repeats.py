"""Repeat rules of iCalendar events: by day, week, month and year, on the wall clock."""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

_LARGEST = 100_000
"""No rule of a calendar counts further; Python would, and never come back."""

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_KNOWN = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "WKST"})
_ALLOWED: Mapping[str, frozenset[str]] = {
    "DAILY": frozenset(),
    "WEEKLY": frozenset({"BYDAY"}),
    "MONTHLY": frozenset({"BYDAY", "BYMONTHDAY"}),
    "YEARLY": frozenset(),
}


@dataclass(frozen=True, slots=True)
class Repeat:
    """One RRULE.

    Attributes:
        days: Weekdays with their place in the month, `(2, TU)` for the second Tuesday; ordinal 0
            means every one.
        month_days: Days of the month; negative ones count from its end.
        until: Last wall-clock moment an instance may begin; None for no end.
    """

    every: str
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    days: tuple[tuple[int, int], ...] = ()
    month_days: tuple[int, ...] = ()


def parse_repeat(text: str, zone: tzinfo) -> Repeat:
    """The rule a text means.

    Raises:
        ValueError: It says something that is not understood here.
    """
    parts = dict(part.partition("=")[::2] for part in text.strip().upper().split(";") if part)
    every = parts.get("FREQ", "")
    if every not in _ALLOWED:
        raise ValueError(f"FREQ={every or '?'} is not understood; known: {', '.join(_ALLOWED)}")
    by = {key for key in parts if key not in ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST")}
    odd = sorted((set(parts) - _KNOWN) | (by - _ALLOWED[every]))
    if odd:
        raise ValueError(f"{odd[0]} with FREQ={every} is not understood")
    interval = _number("INTERVAL", parts.get("INTERVAL", "1"), 1, _LARGEST)
    if every == "WEEKLY" and interval > 1 and parts.get("WKST", "MO") != "MO":
        raise ValueError("weeks that do not begin on Monday are not understood")
    days = tuple(_weekday(day, every) for day in parts["BYDAY"].split(",")) if "BYDAY" in by else ()
    return Repeat(
        every=every,
        interval=interval,
        count=_number("COUNT", parts["COUNT"], 1, _LARGEST) if "COUNT" in parts else None,
        until=_until(parts["UNTIL"], zone) if "UNTIL" in parts else None,
        days=days,
        month_days=_month_days(parts["BYMONTHDAY"]) if "BYMONTHDAY" in by else (),
    )


def _month_days(text: str) -> tuple[int, ...]:
    """Days from the start of a month or, negative, from its end; none beyond any month's."""
    days = {_number("BYMONTHDAY", part, -31, 31) for part in text.split(",")}
    if 0 in days:
        raise ValueError("BYMONTHDAY=0 is no day")
    return tuple(sorted(days))


def _number(name: str, text: str, least: int, most: int) -> int:
    if re.fullmatch(r"[+-]?\d{1,9}", text) is None or not least <= int(text) <= most:
        raise ValueError(f"{name}={text[:20]} is not between {least} and {most}")
    return int(text)


def _weekday(text: str, every: str) -> tuple[int, int]:
    ordinal, name = text[:-2], text[-2:]
    if name not in _DAYS or (ordinal and every != "MONTHLY"):
        raise ValueError(f"BYDAY={text} is not understood")
    return _number("BYDAY", ordinal, -5, 5) if ordinal else 0, _DAYS.index(name)


def _until(text: str, zone: tzinfo) -> datetime:
    if len(text) == 8:
        return datetime.strptime(text, "%Y%m%d") + timedelta(days=1, seconds=-1)  # noqa: DTZ007 - a wall clock
    wall = datetime.strptime(text.rstrip("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - as above
    if text.endswith("Z"):
        return wall.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
    return wall


def starts(first: datetime, rule: Repeat) -> Iterator[datetime]:
    """When instances begin on the wall clock, in order; endless when the rule is."""
    count = 0
    for moment in _candidates(first, rule):
        if moment < first:
            continue
        if rule.until is not None and moment > rule.until:
            return
        yield moment
        count += 1
        if rule.count is not None and count >= rule.count:
            return


def _candidates(first: datetime, rule: Repeat) -> Iterator[datetime]:
    if rule.every == "DAILY":
        yield from _days(first, rule.interval)
    elif rule.every == "WEEKLY":
        yield from _weeks(first, rule)
    else:
        yield from _months(first, rule)


def _days(first: datetime, interval: int) -> Iterator[datetime]:
    moment = first
    while moment.year < 9990:
        yield moment
        moment += timedelta(days=interval)


def _weeks(first: datetime, rule: Repeat) -> Iterator[datetime]:
    weekdays = sorted(day for _, day in rule.days) or [first.weekday()]
    monday = first - timedelta(days=first.weekday())
    while monday.year < 9990:
        yield from (monday + timedelta(days=day) for day in weekdays)
        monday += timedelta(weeks=rule.interval)


_EMPTY_MONTHS = 64
"""In a row, without a day of a rule: it never has one. 29 February skips eight years at most."""


def _months(first: datetime, rule: Repeat) -> Iterator[datetime]:
    """Months a rule names; a date a month does not have is passed over, as the standard says."""
    month = first.year * 12 + first.month - 1
    step = rule.interval * (12 if rule.every == "YEARLY" else 1)
    empty = 0
    while month // 12 < 9990 and empty < _EMPTY_MONTHS:
        year, number = month // 12, month % 12 + 1
        length = monthrange(year, number)[1]
        days = sorted(_days_of_month(first, rule, year, number, length))
        empty = 0 if days else empty + 1
        for day in days:
            yield first.replace(year=year, month=number, day=day)
        month += step


def _days_of_month(first: datetime, rule: Repeat, year: int, month: int, length: int) -> set[int]:
    if not rule.days and not rule.month_days:
        return {first.day} if first.day <= length else set()
    first_weekday = monthrange(year, month)[0]
    found: set[int] = set()
    for ordinal, weekday in rule.days:
        same = list(range(1 + (weekday - first_weekday) % 7, length + 1, 7))
        if ordinal == 0:
            found |= set(same)
        elif abs(ordinal) <= len(same):
            found.add(same[ordinal - 1 if ordinal > 0 else ordinal])
    dates = {d if d > 0 else length + 1 + d for d in rule.month_days}
    inside = {d for d in dates if 1 <= d <= length}
    if rule.days and rule.month_days:
        return found & inside
    return found | inside
