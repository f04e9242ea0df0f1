"""The newest look at each job, one small file a job."""

from pathlib import Path

import msgspec

from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.jobs.job_look import JobLook


def keep_look(state_dir: Path, context: str, look: JobLook) -> None:
    """Remember it in place of the one before."""
    write_atomic(
        _file(private_dir(_folder(state_dir, context)), look.job), msgspec.json.encode(look)
    )


def last_look(state_dir: Path, context: str, job: str) -> JobLook | None:
    """The newest look at a job; None when there was none, or its file is damaged."""
    try:
        raw = _file(_folder(state_dir, context), job).read_bytes()
        return msgspec.json.decode(raw, type=JobLook)
    except (OSError, msgspec.MsgspecError):
        return None


def _folder(state_dir: Path, context: str) -> Path:
    return state_dir / "job-looks" / context


def _file(folder: Path, job: str) -> Path:
    return folder / f"{job}.json"
