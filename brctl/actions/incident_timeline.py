"""incident.timeline: write the incident's time line, as far as it went, beside the journal."""

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly, Site
from brctl.library.durable_files import write_atomic
from brctl.model.runs.playbook import Arguments
from brctl.view.incident import markdown

FILE = "incident.md"


class IncidentTimeline(ReadOnly):
    """The same text as `brctl incident export`; the run's last line is not in it yet."""

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        run = arguments.text(args, "run", site.run)
        if run != site.run:
            raise ActionFailed(f"`run` must be this run, {site.run}, not {run!r}")
        incident = site.incident()
        path = site.run_dir / FILE
        write_atomic(path, markdown(incident, site.now()))
        say = f"{len(incident.moments)} moments of {incident.id}"
        return ActionResult({"file": str(path)}, changed=False, say=say)
