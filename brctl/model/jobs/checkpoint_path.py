"""What may be the path of a job's checkpoint: nodes send names, and every rank would load one."""

import re
from pathlib import PurePosixPath

from brctl.model.jobs.job import Job

_NAME = re.compile(r"step-([0-9]{1,18})", re.ASCII)


def step_of_name(name: str) -> int | None:
    """The step a checkpoint's folder is named for; None for what is no such name.

    Examples:
        >>> step_of_name("step-00000020"), step_of_name("/evil"), step_of_name("step-1/..")
        (20, None, None)
    """
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def is_checkpoint_of(job: Job, path: str) -> bool:
    """Whether a path is a checkpoint's folder directly in the job's own directory."""
    place = PurePosixPath(path)
    return place.parent == job.checkpoint_dir and step_of_name(place.name) is not None
