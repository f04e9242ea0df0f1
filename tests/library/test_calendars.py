"""Calendars of the configuration: mistakes name their line; a bad file closes its guards."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.library.calendars import CalendarSource, load_calendar
from brctl.library.config import load_settings
from brctl.model.errors import ConfigError

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC)
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: a
contexts: {a: {inventory: []}}
calendars:
"""


def sources(folder: Path, lines: str) -> dict[str, CalendarSource]:
    path = folder / "config.yaml"
    path.write_text(CONFIG + lines)
    return dict(load_settings({"HOME": str(folder)}, config=path).calendars)


def test_ranges_and_files_are_read_beside_the_configuration(tmp_path: Path) -> None:
    """Noon in UTC is two in the afternoon in Berlin; the file is read again at every look."""
    found = sources(
        tmp_path,
        '  day: {timezone: Europe/Berlin, ranges: ["mon-fri 13:00-15:00"]}\n'
        "  stop: {file: stop.ics}\n",
    )
    span = load_calendar(found, "day", NOW).span_at(NOW)
    assert span is not None
    assert f"{span.end_at:%H:%M}" == "13:00"
    assert "No such file" in load_calendar(found, "stop", NOW).problem
    (tmp_path / "stop.ics").write_bytes(
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260706T000000Z\nDURATION:P1D\nEND:VEVENT\n"
        b"END:VCALENDAR\n"
    )
    assert load_calendar(found, "stop", NOW).span_at(NOW) is not None
    for junk in (
        b"\xff\xfe",
        b"x" * (1 << 21),
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\n"
        b"DTSTART:20260706T000000Z\nDURATION:P99999999999W\nEND:VEVENT\nEND:VCALENDAR\n",
    ):
        (tmp_path / "stop.ics").write_bytes(junk)
        assert load_calendar(found, "stop", NOW).problem
    assert "did you mean 'day'?" in load_calendar(found, "days", NOW).problem


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('d: {ranges: ["09:00-10:00"]}', "config.yaml:6: ranges need `timezone`"),
        ("d: {timezone: Mars/Base, file: x}", "config.yaml:6: 'timezone': no time zone"),
        ('d: {timezone: UTC, ranges: ["9-5"]}', "config.yaml:6: '9-5' is no range; write"),
        ("d: {timezone: UTC}", "config.yaml:6: a calendar has either `file` or `ranges`"),
        ("d: {fiel: x}", "unknown key 'fiel' in calendars.d; did you mean 'file'?"),
    ],
)
def test_a_calendar_that_makes_no_sense_is_an_error(
    line: str, expected: str, tmp_path: Path
) -> None:
    """With file and line, before any guard asks."""
    with pytest.raises(ConfigError) as caught:
        sources(tmp_path, f"  {line}\n")
    assert expected in str(caught.value)
