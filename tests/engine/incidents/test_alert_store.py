"""Incidents of alerts: one that is damaged stops nothing, and their number is bounded."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.engine.incidents import alert_store
from brctl.engine.incidents.alert_store import add_verdicts, close, load_all, open_once
from brctl.journal.incident_notes import add_note
from brctl.model.alert import Alert
from brctl.model.errors import UnavailableError

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)


def alert(name: str) -> Alert:
    return Alert(f"print-{name}", {"alertname": name}, {}, NOON)


@pytest.mark.parametrize("content", [b"", b'{"id": "I-', b"[]", b"\xff", b"[" * 100_000])
def test_a_truncated_incident_is_set_aside(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad, _ = open_once(tmp_path, alert("GpuXid"), (), "", NOON)
    sound, _ = open_once(tmp_path, alert("Disk"), (), "", NOON)
    path = tmp_path / "incidents" / f"{bad.id}.json"
    path.write_bytes(content)
    assert [incident.id for incident in load_all(tmp_path)] == [sound.id]
    assert f"{bad.id}.json: damaged; set aside" in caplog.text
    assert path.with_name(f"{path.name}.damaged-1").read_bytes() == content


def test_an_alert_whose_incident_is_damaged_opens_it_again(tmp_path: Path) -> None:
    """Alertmanager repeats what fires: the next repeat finds it open."""
    first, _ = open_once(tmp_path, alert("GpuXid"), (), "", NOON)
    (tmp_path / "incidents" / f"{first.id}.json").write_bytes(b"{")
    again, is_new = open_once(tmp_path, alert("GpuXid"), (), "", NOON)
    assert (again.id, is_new) == (first.id, True)
    assert not open_once(tmp_path, alert("GpuXid"), (), "", NOON)[1]


@pytest.fixture
def room_for_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_store, "KEPT", 4)
    monkeypatch.setattr(alert_store, "MADE_ROOM", 2)


@pytest.mark.usefixtures("room_for_four")
def test_invented_alerts_fill_no_disk(tmp_path: Path) -> None:
    """Alerts that open and end again and again leave a bounded number of files."""
    for number in range(20):
        fired = alert(f"Invented{number}")
        open_once(tmp_path, fired, (), "", NOON)
        close(tmp_path, replace(fired, ends_at=NOON), NOON)
    assert len(list((tmp_path / "incidents").iterdir())) <= 4


@pytest.mark.usefixtures("room_for_four")
def test_what_people_or_a_diagnosis_know_of_is_never_forgotten(tmp_path: Path) -> None:
    """Nor what is open: then the sender is refused, and a person is told."""
    kept = [open_once(tmp_path, alert(f"Real{n}"), (), "", NOON)[0].id for n in range(4)]
    for name in ("Real0", "Real1"):
        close(tmp_path, replace(alert(name), ends_at=NOON), NOON)
    add_note(tmp_path, kept[0], (NOON, "ann", "riser was loose"))
    add_verdicts(tmp_path, kept[1], ("V-1",))
    with pytest.raises(UnavailableError, match="4 incidents of alerts and none"):
        open_once(tmp_path, alert("Invented"), (), "", NOON)
    assert {incident.id for incident in load_all(tmp_path)} == set(kept)
