"""incident.note: a sentence for the people who read the run later."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, ReadOnly
from brctl.model.runs.playbook import Arguments
from brctl.model.units import rfc3339


class IncidentNote(ReadOnly):
    """Appends to `notes.txt` in the run's folder."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        path = context.run.folder / "notes.txt"
        line = " ".join(arguments.text(args, "text").split())
        with path.open("a", encoding="utf-8") as stream:
            stream.write(f"{rfc3339(context.clock.now())} {line}\n")
        return ActionResult({"file": str(path)}, changed=False, say=line)
