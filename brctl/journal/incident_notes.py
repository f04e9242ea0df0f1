"""Notes people leave on an incident, one line each, and post-mortems they export."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from brctl.library.durable_files import append_line, private_dir, write_atomic
from brctl.model.errors import UsageError
from brctl.model.units import parse_rfc3339, rfc3339

FOLDER, EXPORTS = "incidents", "exports"
Note = tuple[datetime, str, str]


def add_note(state_dir: Path, incident: str, note: Note) -> None:
    """Append a note; it is on disk when this returns.

    Raises:
        UsageError: It says nothing, or the incident's name is none.
    """
    at, by, text = note
    line = " ".join(text.split())
    if not line or "/" in incident or not incident:
        raise UsageError("a note needs an incident and words")
    path = private_dir(state_dir / FOLDER) / f"{incident}.ndjson"
    raw = json.dumps({"at": rfc3339(at), "by": by, "text": line}, ensure_ascii=False)
    append_line(path, raw)


def read_notes(state_dir: Path) -> Mapping[str, tuple[Note, ...]]:
    """All notes by incident; a torn last line is left out.

    Raises:
        OSError: A file cannot be read.
    """
    return {path.stem: _notes(path) for path in sorted((state_dir / FOLDER).glob("*.ndjson"))}


def _notes(path: Path) -> tuple[Note, ...]:
    found: list[Note] = []
    for line in path.read_bytes().splitlines():
        try:
            data = json.loads(line)
            found.append((parse_rfc3339(data["at"]), str(data["by"]), str(data["text"])))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(found)


def export(state_dir: Path, name: str, text: str) -> Path:
    """Write an export where only its owner reads it; returns the file."""
    path = private_dir(state_dir / EXPORTS) / name
    write_atomic(path, text)
    return path
