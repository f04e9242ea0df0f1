"""One damaged incident of an alert stops nothing: it is set aside, said, and opened anew."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.engine.incidents.alert_store import load_all, open_once
from brctl.model.alert import Alert

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
