"""The newest looks as they were recorded, in the state directory: `recordings/S-...`.

They hold what nodes said, secrets too, as sweeps do: nothing leaves here but through `export`.
"""

import io
import shutil
from dataclasses import dataclass
from pathlib import Path

import zstandard

from brctl.engine.recording.look import Look, RecordedAnswer, encode, read_answers, read_look
from brctl.engine.recording.recorder import Recorder
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import ConfigError

KEPT, KEPT_BYTES = 20, 500 << 20
ANSWERS, LOOK = "answers.ndjson.zst", "look.json"
UNPACKED_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class RecordedLook:
    """One look with the answers it judged by."""

    look: Look
    answers: tuple[RecordedAnswer, ...]


def keep(state_dir: Path, look: Look, recorder: Recorder) -> None:
    """Put a look on disk, and forget the oldest beyond what is kept."""
    folder = private_dir(state_dir / "recordings" / look.id)
    write_atomic(folder / ANSWERS, recorder.answers())
    write_atomic(folder / LOOK, encode(look))
    total = 0
    for number, old in enumerate(folders(state_dir)):
        total += sum(file.stat().st_size for file in old.iterdir())
        if old != folder and (number >= KEPT or total > KEPT_BYTES):
            shutil.rmtree(old)


def folders(state_dir: Path) -> list[Path]:
    """What is recorded, newest first."""
    return sorted((state_dir / "recordings").glob("S-*"), reverse=True)


def look_in(folder: Path) -> Look:
    """A recorded look without its answers.

    Raises:
        ConfigError: The file is damaged.
    """
    path = folder / LOOK
    try:
        return read_look(path.read_bytes())
    except (OSError, ValueError) as exc:
        raise ConfigError(f"{path}: the recording is damaged: {exc}") from exc


def answers_in(folder: Path) -> tuple[RecordedAnswer, ...]:
    """The answers of a recorded look.

    Raises:
        ConfigError: The file is damaged.
    """
    path = folder / ANSWERS
    try:
        return unpacked_answers(path.read_bytes())
    except (OSError, ValueError, zstandard.ZstdError) as exc:
        raise ConfigError(f"{path}: the recording is damaged: {exc}") from exc


def unpacked_answers(packed: bytes) -> tuple[RecordedAnswer, ...]:
    """The answers that a recorder packed.

    Raises:
        ValueError: They cannot be read.
        zstandard.ZstdError: They cannot be unpacked.
    """
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as stream:
        return tuple(read_answers(stream.read(UNPACKED_LIMIT)))
