"""Incidents that alerts opened, one file each beside the notes; an alert opens one only once."""

import hashlib
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec

from brctl.journal.incident_notes import FOLDER
from brctl.library.durable_files import private_dir, set_aside, write_atomic
from brctl.model.alert import Alert, AlertIncident
from brctl.model.errors import ConfigError, UnavailableError

SOURCE = "alertmanager"
KEPT = 5_000
"""Incidents of alerts on disk: whoever may post can invent them, and every one is a file."""
MADE_ROOM = 500
"""As many are forgotten at once, so that not every further alert reads all of them."""
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def incident_id(alert: Alert) -> str:
    """Stable over repeats; a new one when the same alert begins anew."""
    text = f"{alert.fingerprint} {alert.starts_at.isoformat()}"
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
    return "I-" + "".join(_LETTERS[number >> shift & 31] for shift in (25, 20, 15, 10, 5, 0))


def _path(state_dir: Path, name: str) -> Path:
    return state_dir / FOLDER / f"{name}.json"


def open_once(
    state_dir: Path, alert: Alert, nodes: tuple[str, ...], job: str, now_at: datetime
) -> tuple[AlertIncident, bool]:
    """The incident of an alert; True when this call has opened it.

    Raises:
        UnavailableError: There are too many incidents that may not be forgotten.
    """
    name = incident_id(alert)
    before = _find(state_dir, name)
    if before is not None:
        return before, False
    if len(_files(state_dir)) >= KEPT:
        _forget_oldest_closed(state_dir)
    incident = AlertIncident(
        name, SOURCE, alert.name, alert.summary, alert.fingerprint, alert.starts_at, now_at,
        nodes, job, dict(alert.labels),
    )  # fmt: skip
    save(state_dir, incident)
    return incident, True


def close(state_dir: Path, alert: Alert, now_at: datetime) -> AlertIncident | None:
    """Close what a resolved alert has opened; None when nothing is open under it."""
    incident = _find(state_dir, incident_id(alert))
    if incident is None or incident.closed_at is not None:
        return None
    closed = replace(incident, closed_at=alert.ends_at or now_at)
    save(state_dir, closed)
    return closed


def add_verdicts(state_dir: Path, name: str, verdicts: tuple[str, ...]) -> None:
    """Keep which verdicts a diagnosis of an incident has given."""
    incident = _find(state_dir, name)
    if incident is not None:
        merged = tuple(dict.fromkeys((*incident.verdicts, *verdicts)))
        save(state_dir, replace(incident, verdicts=merged))


def save(state_dir: Path, incident: AlertIncident) -> None:
    """Write one incident; a reader sees the old file or the new one."""
    private_dir(state_dir / FOLDER)
    write_atomic(_path(state_dir, incident.id), msgspec.json.encode(incident))


def load_all(state_dir: Path) -> tuple[AlertIncident, ...]:
    """Every incident an alert has opened; a damaged file is set aside and stops nothing."""
    found = (_read(path) for path in _files(state_dir))
    return tuple(incident for incident in found if incident is not None)


def _files(state_dir: Path) -> list[Path]:
    return sorted((state_dir / FOLDER).glob("I-*.json"))


def _forget_oldest_closed(state_dir: Path) -> None:
    """Make room; what people wrote on, or a diagnosis gave a verdict for, is kept."""
    noted = {path.stem for path in (state_dir / FOLDER).glob("*.ndjson")}
    closed = [
        incident
        for incident in load_all(state_dir)
        if incident.closed_at is not None and not incident.verdicts and incident.id not in noted
    ]
    if not closed:
        raise UnavailableError(
            f"{state_dir / FOLDER}: {KEPT} incidents of alerts and none that may be forgotten",
            hint="see who posts them: `brctl incident list`; then move old files away",
        )
    for incident in sorted(closed, key=lambda i: i.opened_at)[:MADE_ROOM]:
        _path(state_dir, incident.id).unlink(missing_ok=True)


def _find(state_dir: Path, name: str) -> AlertIncident | None:
    path = _path(state_dir, name)
    return _read(path) if path.is_file() else None


def _read(path: Path) -> AlertIncident | None:
    """One incident; None for a damaged file, so that its alert opens it anew."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=AlertIncident)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc}") from exc
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        set_aside(path)
        return None
