"""Inputs of the runs that a person starts by hand: the nodes a text means, the job they carry."""

from collections.abc import Iterable

from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import open_controller
from brctl.engine.runs.context import run_context
from brctl.library.config import Settings
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.runs.playbook import Json


async def node_names(settings: Settings, text: str) -> list[Json]:
    """The nodes a text means, for an input of a playbook."""
    async with open_controller(settings, place=False) as controller:
        return list(await select_nodes(controller, text))


async def swap_inputs(
    settings: Settings, text: str, job: str | None, reason: str
) -> dict[str, Json]:
    """What a swap is given: the suspects, why, and the job; without one, that which they carry.

    Raises:
        UsageError: They carry no job, or several.
    """
    async with open_controller(settings, place=False) as controller:
        names = await select_nodes(controller, text)
        carried = job or _carried(await run_context(controller).jobs.all(), names, text)
    return {"suspects": list(names), "job": carried, "reason": reason}


def _carried(jobs: Iterable[Job], names: Iterable[str], text: str) -> str:
    found = [job.name for job in jobs if not set(names).isdisjoint(job.nodes)]
    if len(found) != 1:
        raise UsageError(
            f"{text} carries {', '.join(found) or 'no job'}", hint="name it with --job"
        )
    return found[0]
