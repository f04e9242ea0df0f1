"""Where each rank's data loader was when a checkpoint was made: `loader/rank-00003.json` in it.

Whatever the loader needs to go on lies beside it, `loader/rank-00003.state.json`: a shuffle buffer
has any size, and `brctl ckpt` reads the small files of all ranks.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

MARKER_LIMIT_BYTES = 64 << 10
"""More of it `brctl ckpt` does not read."""

STATE_SUFFIX = ".state.json"


class PlaceError(ValueError):
    """A checkpoint does not say where this rank's loader was, though it says something."""


def save_position(checkpoint: Path, rank: int, of: int, batch: Mapping[str, object]) -> None:
    """Write one rank's, whole or not at all, where `brctl ckpt` compares them.

    Args:
        checkpoint: Its directory.
        rank: Among the ranks that read data of their own.
        of: Number of those ranks.
        batch: `position` and `digest` of the last batch, the id of the `loader` that counts, the
            `samples` it gave since `since_step`, the `global_batch` of all ranks in a step; and
            as `state` whatever the loader itself needs to go on, of any size.

    Raises:
        OSError: It cannot be written.
        PlaceError: What is not `state` is larger than `brctl ckpt` reads.
    """
    marker = _marker(checkpoint, rank)
    marker.parent.mkdir(parents=True, exist_ok=True)
    row = {"rank": rank, "of": of, **batch}
    state = row.pop("state", None)
    if state is not None:
        content = json.dumps(state).encode()
        row["state_bytes"], row["state_sha256"] = len(content), sha256(content).hexdigest()
        _write(marker.with_suffix(STATE_SUFFIX), content)
    text = json.dumps(row).encode()
    if len(text) > MARKER_LIMIT_BYTES:
        raise PlaceError(
            f"the position of rank {rank}'s loader takes {len(text)} bytes, at most "
            f"{MARKER_LIMIT_BYTES} are read: what it needs to go on belongs into `state`"
        )
    _write(marker, text)


def read_place(checkpoint: Path, rank: int, of: int) -> Mapping[str, object] | None:
    """What `save_position` wrote; None where the checkpoint keeps nothing of loaders.

    Raises:
        PlaceError: It is of other ranks, damaged, or missing beside those of others.
    """
    path = _marker(checkpoint, rank)
    if not path.parent.exists():
        return None
    try:
        row = json.loads(path.read_text())
        state = _read_state(path, row) if "state_sha256" in row else None
    except (OSError, ValueError, TypeError, RecursionError) as exc:
        raise PlaceError(f"{path}: {exc}") from exc
    if not isinstance(row, dict) or type(row.get("position")) is not int:
        raise PlaceError(f"{path}: position is no count")
    if row.get("of") != of:
        raise PlaceError(f"{path} is of {row.get('of')} ranks that read data, this job has {of}")
    return row if state is None else {**row, "state": state}


def _marker(checkpoint: Path, rank: int) -> Path:
    return checkpoint / "loader" / f"rank-{rank:05d}.json"


def _read_state(marker: Path, row: Mapping[str, object]) -> object:
    path = marker.with_suffix(STATE_SUFFIX)
    content = path.read_bytes()
    if sha256(content).hexdigest() != row["state_sha256"]:
        raise ValueError(f"{path.name} is not what was saved with it")
    return json.loads(content)


def _write(path: Path, content: bytes) -> None:
    partial = path.with_suffix(".new")
    partial.write_bytes(content)
    partial.replace(path)
