"""incident.timeline: write the incident's time line, as far as it went, beside the journal."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.library.durable_files import write_atomic
from brctl.model.runs.playbook import Arguments
from brctl.view.incident import markdown

FILE = "incident.md"


class IncidentTimeline(ReadOnly):
    """The same text as `brctl incident export`; the run's last line is not in it yet."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        run = arguments.text(args, "run", context.run.name)
        if run != context.run.name:
            raise ActionFailed(f"`run` must be this run, {context.run.name}, not {run!r}")
        incident = context.run.incident()
        path = context.run.folder / FILE
        write_atomic(path, markdown(incident, context.clock.now()))
        say = f"{len(incident.moments)} moments of {incident.id}"
        return ActionResult({"file": str(path)}, changed=False, say=say)
