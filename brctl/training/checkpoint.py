"""Save and load with torch.distributed.checkpoint: `step-00000020/` holds the state after step 20.

`.metadata` is written last, by rank 0; a directory without it is not a checkpoint. Reader and
writer are named: looking for them, PyTorch would import those of remote stores in every rank.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor
from torch.distributed import checkpoint


def directory_of(directory: Path, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return directory / f"step-{step:08d}"


def save(directory: Path, step: int, state: Mapping[str, Tensor]) -> None:
    """Write a checkpoint; every rank must call it with its copy of the same state."""
    writer = checkpoint.FileSystemWriter(directory_of(directory, step))
    checkpoint.save(dict(state), storage_writer=writer)


def load(directory: Path, state: Mapping[str, Tensor]) -> None:
    """Read a checkpoint into the tensors of `state`; every rank must call it."""
    checkpoint.load(dict(state), storage_reader=checkpoint.FileSystemReader(directory))


def remove_old(directory: Path, keep: int) -> None:
    """Remove all but the newest complete checkpoints, and incomplete ones older than those."""
    saved = sorted(path for path in directory.glob("step-*") if path.is_dir())
    complete = [path for path in saved if (path / ".metadata").exists()]
    if len(complete) > keep:
        for path in saved:
            if path < complete[-keep]:
                shutil.rmtree(path, ignore_errors=True)
