"""Events of an iCalendar file (RFC 5545) as spans of time.

What people's calendars write for windows and freezes is understood: single events, repeats by day,
week, month and year, exceptions, moved and cancelled instances. A repeat rule that says more is an
error and never left out: half a calendar would open a window nobody meant. See decision 0056.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count, islice

from brctl.model.runs.calendar import Span
from brctl.playbook.calendars.ranges import in_utc
from brctl.playbook.calendars.repeats import Repeat, parse_repeat, starts

LOOKED_AT = 50_000
"""Instances of one event that are looked at; a daily event reaches back over a hundred years."""

LOOKED_AT_IN_FILE = 500_000
"""Of all events together: a file of a megabyte has ten thousand of them."""

Zones = Callable[[str], tzinfo]
"""A time zone by name; raises ValueError for one nobody knows."""

_DURATION = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


@dataclass(frozen=True, slots=True)
class _Line:
    """`NAME;PARAMETER=VALUE:TEXT`, unfolded."""

    name: str
    parameters: Mapping[str, str]
    text: str
    number: int


@dataclass(slots=True)
class _CalendarEvent:
    """One VEVENT: its first instance on the wall clock of its zone."""

    zone: tzinfo
    start: datetime
    length: timedelta
    uid: str = ""
    repeat: Repeat | None = None
    except_at: set[datetime] = field(default_factory=set)
    instead_of: datetime | None = None
    cancelled: bool = False


def read_spans(
    text: str, zone: tzinfo | None, zones: Zones, since: datetime, until: datetime
) -> list[Span]:
    """Every span of a file that touches the time between two moments.

    Args:
        text: The file.
        zone: Where times without a zone are meant; None makes such a time an error.
        zones: Finds the zones the file names.
        since: Earliest moment of interest.
        until: Latest moment of interest.

    Raises:
        ValueError: The file cannot be understood; names the line.
    """
    lines = list(_lines(text))
    if not lines or (lines[0].name, lines[0].text.upper()) != ("BEGIN", "VCALENDAR"):
        raise ValueError("not an iCalendar file: it does not begin with BEGIN:VCALENDAR")
    if (lines[-1].name, lines[-1].text.upper()) != ("END", "VCALENDAR"):
        raise ValueError("the file is cut off: it does not end with END:VCALENDAR")
    events = [_event(rows, zone, zones) for rows in _blocks(lines)]
    moved = {(e.uid, e.instead_of) for e in events}
    looked_at = count(1)
    spans: list[Span] = []
    for event in events:
        if not event.cancelled:
            spans += _instances(event, moved, since, until, looked_at)
    return spans


def _lines(text: str) -> Iterator[_Line]:
    """Logical lines: one that begins with a blank goes on with the one before."""
    whole: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if raw[:1] in (" ", "\t") and whole:
            whole[-1] = (whole[-1][0], whole[-1][1] + raw[1:])
        elif raw.strip():
            whole.append((number, raw))
    for number, line in whole:
        head, colon, rest = _split(line)
        if not colon:
            raise ValueError(f"line {number}: no `:` in {line[:40]!r}")
        name, *parameters = head.split(";")
        pairs = (p.partition("=") for p in parameters)
        yield _Line(name.upper(), {k.upper(): v.strip('"') for k, _, v in pairs}, rest, number)


def _split(line: str) -> tuple[str, str, str]:
    """At the first colon outside quotes: a quoted parameter may hold one."""
    quoted = False
    for index, char in enumerate(line):
        quoted ^= char == '"'
        if char == ":" and not quoted:
            return line[:index], ":", line[index + 1 :]
    return line, "", ""


def _blocks(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """The lines of each VEVENT, without those of alarms inside it."""
    block: list[_Line] = []
    inside: list[str] = []
    for line in lines:
        if line.name == "BEGIN":
            inside.append(line.text.upper())
            block = [line] if inside[-1] == "VEVENT" else block
        elif line.name == "END":
            if not inside or inside.pop() != line.text.upper():
                raise ValueError(f"line {line.number}: END:{line.text[:20]} closes nothing")
            if line.text.upper() == "VEVENT":
                yield block
        elif inside and inside[-1] == "VEVENT":
            block.append(line)


def _event(rows: Sequence[_Line], zone: tzinfo | None, zones: Zones) -> _CalendarEvent:
    found = {row.name: row for row in rows}
    first = found.get("DTSTART")
    if first is None:
        raise ValueError(f"line {rows[0].number}: an event without DTSTART")
    if "RDATE" in found or "EXRULE" in found:
        line = found.get("RDATE") or found["EXRULE"]
        raise ValueError(f"line {line.number}: {line.name} is not understood")
    start, own = _moment(first, zone, zones)
    event = _CalendarEvent(own, start, _length(found, first, start, zone, zones))
    event.uid = found["UID"].text if "UID" in found else ""
    event.cancelled = "STATUS" in found and found["STATUS"].text.upper() == "CANCELLED"
    if "RRULE" in found:
        event.repeat = _repeat_of(found["RRULE"], lambda text: parse_repeat(text, own))
    if "RECURRENCE-ID" in found:
        event.instead_of = in_utc(*_moment(found["RECURRENCE-ID"], zone, zones))
    for row in rows:
        if row.name == "EXDATE":
            for text in row.text.split(","):
                one = _Line(row.name, row.parameters, text, row.number)
                event.except_at.add(in_utc(*_moment(one, zone, zones)))
    return event


def _repeat_of(row: _Line, parse: Callable[[str], Repeat]) -> Repeat:
    try:
        return parse(row.text)
    except ValueError as exc:
        raise ValueError(f"line {row.number}: {row.name}: {exc}") from exc


def _moment(row: _Line, zone: tzinfo | None, zones: Zones) -> tuple[datetime, tzinfo]:
    """What the wall clock shows, and in which zone."""
    text = row.text.strip()
    try:
        whole_day = len(text) == 8
        wall = datetime.strptime(text.rstrip("Z"), "%Y%m%d" if whole_day else "%Y%m%dT%H%M%S")  # noqa: DTZ007 - the zone is told apart
        if text.endswith("Z"):
            return wall, UTC
        own = zones(row.parameters["TZID"]) if "TZID" in row.parameters else zone
    except ValueError as exc:
        raise ValueError(f"line {row.number}: {row.name}: {exc}") from exc
    if own is None:
        raise ValueError(f"line {row.number}: {row.name} has no time zone; give the calendar one")
    return wall, own


def _length(
    found: Mapping[str, _Line], first: _Line, start: datetime, zone: tzinfo | None, zones: Zones
) -> timedelta:
    if "DTEND" in found:
        end, _ = _moment(found["DTEND"], zone, zones)
        length = end - start
    elif "DURATION" in found:
        length = _told_length(found["DURATION"])
    else:
        length = timedelta(days=1) if len(first.text.strip()) == 8 else timedelta()
    if length < timedelta():
        raise ValueError(f"line {first.number}: an event that ends before it begins")
    return length


def _told_length(row: _Line) -> timedelta:
    match = _DURATION.fullmatch(row.text.strip())
    if match is None:
        raise ValueError(f"line {row.number}: DURATION {row.text[:20]!r} is not understood")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _instances(
    event: _CalendarEvent,
    moved: set[tuple[str, datetime | None]],
    since: datetime,
    until: datetime,
    looked_at: Iterator[int],
) -> Iterator[Span]:
    walls = starts(event.start, event.repeat) if event.repeat else iter((event.start,))
    for number, wall in enumerate(islice(walls, LOOKED_AT), 1):
        at = in_utc(wall, event.zone)
        if at > until:
            return
        if next(looked_at) > LOOKED_AT_IN_FILE:
            raise ValueError("its events repeat too often to be followed all")
        if number == LOOKED_AT:
            raise ValueError("an event repeats too often to be followed")
        end = in_utc(wall + event.length, event.zone)
        is_master = event.instead_of is None
        if end <= since or at in event.except_at or (is_master and (event.uid, at) in moved):
            continue
        yield Span(at, end)
