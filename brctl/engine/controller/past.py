"""What earlier looks and runs left behind and a diagnosis judges by, beside its nodes' answers."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.sweeps.report import NodeReport
from brctl.model.verdict import Verdict
from brctl.playbook.tree import IncidentHistory


class Past(Protocol):
    """The state directory and the scheduler; or what a recording kept of them."""

    @property
    def name(self) -> str:
        """The scheduler's."""
        ...

    def reports(self) -> Mapping[str, NodeReport]:
        """What every node answered last: counters are judged by how they grew."""
        ...

    def against(self, nodes: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        """The check and the sentence of each of these nodes that shows a warning or worse."""
        ...

    def look(self, job: Job) -> JobLook | None:
        """The look at a job that was kept last."""
        ...

    def history(self, verdict: Verdict, now: datetime) -> IncidentHistory:
        """What was tried already in this incident."""
        ...

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        """What the scheduler knows of a job's ranks."""
        ...
