"""What may be the path of a job's checkpoint: nodes send names, and every rank would load one."""

import re
from pathlib import PurePosixPath

from brctl.model.jobs.job import Job


def is_named_for(job: Job, name: str, step: int) -> bool:
    """Whether a name is that of a checkpoint of this step; one without a step says it inside.

    Examples:
        >>> from brctl.model.jobs.job import example_job
        >>> job = example_job()
        >>> [is_named_for(job, name, 20) for name in ("step-00000020", "step-21", "/evil")]
        [True, False, False]
    """
    match = re.fullmatch(job.checkpoint_names, name, re.ASCII)
    if match is None:
        return False
    named = match.groupdict().get("step")
    return named is None or int(named) == step


def is_checkpoint_of(job: Job, path: str) -> bool:
    """Whether a path is a checkpoint's own, directly in the job's directory."""
    checkpoint = PurePosixPath(path)
    fits = re.fullmatch(job.checkpoint_names, checkpoint.name, re.ASCII) is not None
    return checkpoint.parent == job.checkpoint_dir and fits
