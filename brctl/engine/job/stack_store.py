"""Where captured stacks are kept: `stacks/<job>/<time>/round-N/rank-00003.json`."""

from datetime import datetime
from pathlib import Path

from brctl.library.durable_files import private_dir
from brctl.model.errors import UsageError

_STACKS = "stacks"


def new_folder(state_dir: Path, job: str, now_at: datetime) -> Path:
    """A new folder for one capture."""
    folder = state_dir / _STACKS / job / f"{now_at:%Y%m%dT%H%M%S.%f}"
    private_dir(folder.parent)
    folder.mkdir(mode=0o700)
    return folder


def newest_folder(state_dir: Path, job: str) -> Path:
    """The newest capture of a job.

    Raises:
        UsageError: There is none.
    """
    folders = sorted((state_dir / _STACKS / job).glob("*/"))
    if not folders:
        raise UsageError(f"no stacks of {job} yet", hint=f"brctl stacks dump --job {job}")
    return folders[-1]
