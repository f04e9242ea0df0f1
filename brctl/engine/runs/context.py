"""Compose the context of runs from an opened controller, and bind it to one run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from brctl.actions.context import RunContext, ThisRun
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.notify_runs import run_facts
from brctl.engine.incidents.timeline import incident_of_run
from brctl.engine.runs.capabilities import (
    FleetNodes,
    FleetSweeps,
    GroupSearch,
    PlacedJobs,
    SiteCalendars,
    StandbyPool,
    StoredVerdicts,
    SystemClock,
    UnixPeople,
)
from brctl.library.guards import load_guards
from brctl.model.errors import UsageError
from brctl.model.runs.result import RunState
from brctl.notify.notifier import Notifier
from brctl.view.incident import Incident
from brctl.view.notices.contents import RunFacts

UNBORN = "R-new"
"""The name a plan stands under until its run exists."""


class UnbornRun:
    """No run yet: somebody plans or looks; see `ThisRun`."""

    name = UNBORN

    def __init__(self, state_dir: Path) -> None:
        self.folder = state_dir

    def facts(self) -> RunFacts:
        raise UsageError("no run has begun, so nothing can be told of it")

    def note(self, text: str) -> None:
        raise UsageError("no run has begun, so nobody follows it")

    def incident(self) -> Incident:
        raise UsageError("no run has begun, so it belongs to no incident")


class JournalledRun:
    """A run as its folder tells it; see `ThisRun`."""

    def __init__(
        self,
        context: RunContext,
        folder: Path,
        name: str = "",
        write_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._context = context
        self._write_note = write_note
        self.folder = folder
        self.name = name or folder.name
        # The journal's last line is not written yet when hooks tell how the run ends.
        self.ending = (RunState.RUNNING, "")

    def facts(self) -> RunFacts:
        return replace(run_facts(self._context, self.folder), ending=self.ending)

    def note(self, text: str) -> None:
        self._write_note(text)

    def incident(self) -> Incident:
        return incident_of_run(self._context.state_dir, self.facts())


def for_run(context: RunContext, run: ThisRun) -> RunContext:
    """The same context with a run's name on everything that is left."""
    return replace(context, run=run)


def run_context(controller: Controller) -> RunContext:
    """Everything a run may use of an opened controller; bound to no run yet."""
    sweeps = FleetSweeps(controller)
    jobs = PlacedJobs(controller, sweeps)
    return RunContext(
        name=controller.settings.context,
        state_dir=controller.state_dir,
        inventory=controller.inventory,
        guards=load_guards(controller.settings.guard_files),
        ssh=controller.settings.ssh,
        backend=controller.backend,
        notifier=Notifier(controller.settings.notify, controller.state_dir, controller.now),
        clock=SystemClock(controller),
        nodes=FleetNodes(controller),
        jobs=jobs,
        sweeps=sweeps,
        search=GroupSearch(controller),
        standbys=StandbyPool(controller, jobs),
        verdicts=StoredVerdicts(controller),
        people=UnixPeople(),
        calendars=SiteCalendars(controller),
        run=UnbornRun(controller.state_dir),
    )
