"""The past as the state directory of a context keeps it."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from brctl.engine.controller.past import Past
from brctl.engine.controller.wiring import Controller
from brctl.engine.job.looks import look_before
from brctl.engine.job.read_ranks import scheduler_says
from brctl.engine.runs.propose import incident_history
from brctl.engine.sweeps.node_states import known_against
from brctl.engine.sweeps.sweep_store import latest_reports
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.sweeps.report import NodeReport
from brctl.model.verdict import Verdict
from brctl.playbook.tree import IncidentHistory


def past_of(controller: Controller) -> Past:
    """The past a diagnosis judges by."""
    return controller.past or StatePast(controller)


class StatePast:
    """See `Past`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    @property
    def name(self) -> str:
        return self._controller.backend.name

    def reports(self) -> Mapping[str, NodeReport]:
        return latest_reports(self._controller.state_dir)

    def against(self, nodes: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        return known_against(self._controller.state_dir, nodes)

    def look(self, job: Job) -> JobLook | None:
        return look_before(self._controller, job)

    def history(self, verdict: Verdict, now: datetime) -> IncidentHistory:
        site = self._controller
        return incident_history(site.state_dir, site.settings.context, verdict, now)

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        return await scheduler_says(self._controller.backend, job)
