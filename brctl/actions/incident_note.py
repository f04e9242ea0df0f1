"""incident.note: a sentence for the people who read the run later."""

from brctl.actions import arguments
from brctl.actions.contract import ActionResult, ReadOnly, Site
from brctl.model.runs.playbook import Arguments
from brctl.model.units import rfc3339


class IncidentNote(ReadOnly):
    """Appends to `notes.txt` in the run's folder."""

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        path = site.run_dir / "notes.txt"
        line = " ".join(arguments.text(args, "text").split())
        with path.open("a", encoding="utf-8") as stream:
            stream.write(f"{rfc3339(site.now())} {line}\n")
        return ActionResult({"file": str(path)}, changed=False, say=line)
