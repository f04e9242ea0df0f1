"""What an incident file holds, read: its looks, and what they really were."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from brctl.engine.recording.archive import IncidentFile
from brctl.engine.recording.encryption import read_any
from brctl.engine.recording.look import read_answers, read_look
from brctl.engine.recording.look_members import answers_name, look_name
from brctl.engine.recording.ring import RecordedLook
from brctl.model.errors import ConfigError
from brctl.view.recorded.scores import Truth


def looks_in(
    path: Path, identity: Path | None = None
) -> tuple[IncidentFile, Sequence[RecordedLook]]:
    """The looks of a file, in the order it names them; `identity` opens what age encrypted.

    Raises:
        ConfigError: The file cannot be read, or a look in it does not fit together.
    """
    file = read_any(path, identity)
    return file, looks_of(path, file)


def looks_of(path: Path, file: IncidentFile) -> Sequence[RecordedLook]:
    """The looks of a file that was read; `path` is what errors name."""
    return [_look_in(path, file, name) for name in file.manifest.looks]


def _look_in(path: Path, file: IncidentFile, name: str) -> RecordedLook:
    try:
        look = read_look(file.members[look_name(name)])
        answers = read_answers(file.members[answers_name(name)])
        return RecordedLook(look, tuple(answers))
    except (KeyError, ValueError) as exc:
        raise ConfigError(f"{path}: look {name[:60]!r} cannot be read: {str(exc)[:200]}") from exc


def truth_in(path: Path, file: IncidentFile, look: str) -> Truth | None:
    """The confirmed cause of a look; None where nobody confirmed one.

    Raises:
        ConfigError: It cannot be read.
    """
    raw = file.members.get(truth_name(look))
    try:
        return msgspec.json.decode(raw, type=Truth) if raw is not None else None
    except msgspec.MsgspecError as exc:
        raise ConfigError(f"{path}: {truth_name(look)} cannot be read: {exc}") from exc


def truth_name(look: str) -> str:
    """Where an archive keeps what a look really was."""
    return f"looks/{look}/truth.json"
