"""`brctl doctor`: what would delete the steps that jobs keep in memory."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from brctl.library.config import Settings
from brctl.library.jobs import load_job
from brctl.model.doctor_finding import DoctorFinding
from brctl.model.sweeps.sweep import Health

_SHARED_MEMORY = PurePosixPath("/dev/shm")  # noqa: S108  # where nodes may delete; nothing is written
_LOGOUT = "goes at the user's last logout where RemoveIPC is on; Docker's default is 64 MiB"
_REMOVES = {
    "slurm": "goes with the allocation where JobContainerType=job_container/tmpfs lists it in Dirs"
    " (scontrol show config)",
    "kubernetes": "goes with the pod unless it is a hostPath; a memory emptyDir is the pod's own",
}


def slots(settings: Settings) -> Iterator[DoctorFinding]:
    """Each job that keeps steps in memory, with what its nodes may do to them."""
    for job in map(load_job, settings.jobs):
        where = job.slot_directory
        if where is None:
            continue
        risks = [_REMOVES[settings.scheduler]] if settings.scheduler in _REMOVES else []
        risks += [_LOGOUT] if where.is_relative_to(_SHARED_MEMORY) else []
        text = f"{job.name} keeps its steps in {where}"
        if not risks:
            yield DoctorFinding(Health.OK, "slots", text)
            continue
        hint = f"brctl check run job.slots --job {job.name}"
        yield DoctorFinding(Health.WARNING, "slots", f"{text}, which {'; '.join(risks)}", hint)
