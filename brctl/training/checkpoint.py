"""Save and load with torch.distributed.checkpoint: `step-00000020/` holds the state after step 20.

`.metadata` is written last, by rank 0; a directory without it is not a checkpoint. Reader and
writer are named: looking for them, PyTorch would import those of remote stores in every rank.
"""

import shutil
from collections.abc import Mapping, Sequence
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


def remove_old(directory: Path, keep: int, saved_step: int, bad_since: int | None = None) -> None:
    """Remove all but the newest complete checkpoints, and incomplete ones older than those.

    Those made of wrong numbers are counted for themselves: they must not push out the sound ones.
    Nor must those of later steps, which a job that was taken back has left, and makes anew.

    Args:
        directory: Where they lie.
        keep: How many stay.
        saved_step: The step that was saved last.
        bad_since: The first step of a bad loss. The newest one from before the update that may have
            made it stays as well: with it that step can be computed again.
    """
    saved = sorted(path for path in directory.glob("step-*") if path.is_dir())
    complete = [path for path in saved if (path / ".metadata").exists()]
    wrong = [path for path in complete if any(path.glob("numbers/*.json"))]
    newest = directory_of(directory, saved_step)
    sound = [path for path in complete if path not in wrong and path <= newest]
    held = _newest_before(sound, bad_since)
    for path in saved:
        is_old = len(sound) > keep and path < sound[-keep] and path != held
        if is_old or path in wrong[:-keep]:
            shutil.rmtree(path, ignore_errors=True)


def _newest_before(sound: Sequence[Path], bad_since: int | None) -> Path | None:
    """A loss is computed with the weights of the step before, which may be bad already."""
    if bad_since is None:
        return None
    first_bad = bad_since - 1
    return next((p for p in reversed(sound) if p < directory_of(p.parent, first_bad)), None)
