"""The `calendars:` of config.yaml: maintenance windows and change freezes of the site.

A calendar that cannot be read is handed on with its problem: the guards that ask it refuse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from brctl.library.file_tables import CALENDAR
from brctl.library.schema import Section
from brctl.library.trusted_files import read_beginning, why_untrusted
from brctl.model.errors import did_you_mean
from brctl.model.runs.calendar import Calendar, Span, merged
from brctl.playbook.calendars.ical import read_spans
from brctl.playbook.calendars.ranges import Range, parse_range, spans_of

LOOK_BACK = timedelta(days=62)
LOOK_AHEAD = timedelta(days=400)
SIZE_LIMIT_BYTES = 1 << 20
"""A calendar of windows is small; a whole mailbox is somebody's mistake."""


@dataclass(frozen=True, slots=True)
class CalendarSource:
    """One calendar as the configuration names it: a file, or ranges in a time zone."""

    name: str
    origin: str
    zone: str = ""
    file: Path | None = None
    ranges: tuple[Range, ...] = ()


def read_sources(section: Section, base: Path) -> dict[str, CalendarSource]:
    """The calendars of a configuration; paths are relative to its folder.

    Raises:
        ConfigError: A range or a zone makes no sense; names the line.
    """
    return {name: _source(name, section.section(name), base) for name in section.data}


def _source(name: str, section: Section, base: Path) -> CalendarSource:
    section.allow(CALENDAR)
    if ("file" in section.data) == ("ranges" in section.data):
        raise section.error("a calendar has either `file` or `ranges`")
    zone = section.value("timezone", str, "")
    if zone:
        section.read("timezone", lambda: find_zone(zone))
    if "file" in section.data:
        return CalendarSource(name, section.origin(), zone, base / section.value("file", str))
    if not zone:
        raise section.error("ranges need `timezone`, such as Europe/Berlin or UTC")
    ranges = []
    for index, text in enumerate(section.texts("ranges")):
        try:
            ranges.append(parse_range(text))
        except ValueError as exc:
            raise section.error(str(exc), "ranges", index) from exc
    return CalendarSource(name, section.origin(), zone, ranges=tuple(ranges))


def find_zone(name: str) -> tzinfo:
    """The time zone of a name.

    Raises:
        ValueError: Nobody knows it.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ValueError(f"no time zone {name!r}; write one as Europe/Berlin or UTC") from exc


def load_calendar(sources: Mapping[str, CalendarSource], name: str, now: datetime) -> Calendar:
    """What a calendar says around now; its file is read each time, so an edit counts at once."""
    source = sources.get(name)
    if source is None:
        problem = f"the configuration has no calendar {name!r}; {did_you_mean(name, sources)}"
        return Calendar(name, problem=problem, absent=True)
    try:
        spans = _spans(source, now - LOOK_BACK, now + LOOK_AHEAD)
    except (ValueError, OverflowError) as exc:
        return Calendar(name, problem=f"{source.file}: {exc}", origin=source.origin)
    except OSError as exc:
        return Calendar(name, problem=f"{source.file}: {exc.strerror}", origin=source.origin)
    return Calendar(name, merged(spans), origin=source.origin)


def _spans(source: CalendarSource, since: datetime, until: datetime) -> list[Span]:
    zone = find_zone(source.zone) if source.zone else None
    if source.file is not None:
        return read_spans(_text(source.file), zone, find_zone, since, until)
    if zone is None:
        raise ValueError("ranges without a time zone")
    return [span for rule in source.ranges for span in spans_of(rule, zone, since, until)]


def _text(path: Path) -> str:
    # Whoever may write it opens a maintenance window for everything.
    problem = why_untrusted(path) if path.exists() else ""
    if problem:
        raise ValueError(f"refused: {problem}")
    raw = read_beginning(path, SIZE_LIMIT_BYTES + 1)
    if len(raw) > SIZE_LIMIT_BYTES:
        raise ValueError(f"larger than {SIZE_LIMIT_BYTES} bytes")
    return raw.decode("utf-8-sig")
