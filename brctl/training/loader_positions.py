"""Where each rank's data loader was when a checkpoint was made: `loader/rank-00003.json` in it."""

import json
from collections.abc import Mapping
from pathlib import Path


def save_position(checkpoint: Path, rank: int, of: int, batch: Mapping[str, object]) -> None:
    """Write one rank's, whole or not at all, where `brctl ckpt` compares them.

    Args:
        checkpoint: Its directory.
        rank: Among the ranks that read data of their own.
        of: Number of those ranks.
        batch: `position` and `digest` of the last batch, and the id of the `loader` that counts.

    Raises:
        OSError: It cannot be written.
    """
    folder = checkpoint / "loader"
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"rank-{rank:05d}.new"
    partial.write_text(json.dumps({"rank": rank, "of": of, **batch}))
    partial.replace(folder / f"rank-{rank:05d}.json")


def read_position(checkpoint: Path, rank: int, of: int) -> int | None:
    """Batches a rank had had; None where the checkpoint does not say, or has other ranks.

    Raises:
        ValueError: It is no position.
        OSError: It cannot be read.
    """
    path = checkpoint / "loader" / f"rank-{rank:05d}.json"
    if not path.exists():
        return None
    row = json.loads(path.read_text())
    position = row.get("position") if isinstance(row, dict) else None
    if type(position) is not int:
        raise ValueError(f"{path}: position is no count")
    return position if row.get("of") == of else None
