"""Inputs of the runs that a person starts by hand: the nodes a text means, the job they carry."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brctl.actions.context import RunContext
from brctl.actions.standby.acquire import find_candidates
from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents.verdict_store import open_verdicts
from brctl.engine.runs.context import run_context
from brctl.engine.sweeps.run_checks import Question, sweep_nodes
from brctl.engine.sweeps.survey import survey
from brctl.library.config import Settings
from brctl.model.errors import GuardError, UsageError
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Json
from brctl.model.sweeps.sweep import Health, NodeHealth
from brctl.sweep.problems import reason_of


async def node_names(settings: Settings, text: str, exclude: str | None = None) -> list[Json]:
    """The nodes a text means, for an input of a playbook."""
    async with open_controller(settings, place=False) as controller:
        return list(await select_nodes(controller, text, exclude))


async def refuse_cordoned(settings: Settings, names: Sequence[Json]) -> None:
    """A cordon that is there keeps its owner, and so the end that this owner gave it, or none.

    Raises:
        GuardError: One of the nodes has one.
    """
    async with open_controller(settings, place=False) as controller:
        cordons = await controller.backend.cordons()
    there = [cordons[str(name)] for name in names if name in cordons]
    if there:
        raise GuardError(
            f"refused: {fold([c.node for c in there])} cordoned already, by"
            f" {', '.join(sorted({c.owner for c in there}))}; --ttl gives that no end."
            " Nothing changed.",
            hint=f"brctl uncordon '{fold([c.node for c in there])}' first, or leave out --ttl",
        )


async def swap_inputs(
    settings: Settings,
    text: str,
    job: str | None,
    reason: str,
    standbys: str | None = None,
    exclude: str | None = None,
) -> dict[str, Json]:
    """What a swap is given: the suspects, why, and the job; without one, that which they carry.

    Raises:
        UsageError: They carry no job, or several; or too few standbys are named.
    """
    async with open_controller(settings, place=False) as controller:
        names = await select_nodes(controller, text, exclude)
        chosen = await select_nodes(controller, standbys) if standbys is not None else ()
        if standbys is not None and len(chosen) < len(names):
            raise UsageError(f"--with {standbys}: {len(chosen)} for {len(names)} nodes to replace")
        if chosen:
            await _refuse_taken(run_context(controller), chosen)
        carried = job or _carried(await run_context(controller).jobs.all(), names, text)
    values: dict[str, Json] = {"suspects": list(names), "job": carried, "reason": reason}
    return {**values, "standbys": list(chosen)} if chosen else values


async def _refuse_taken(context: RunContext, chosen: Sequence[str]) -> None:
    """A standby that cannot be taken is said before anything is planned, not after a cordon."""
    free = (await find_candidates(context, only=chosen)).in_order
    taken = [name for name in chosen if name not in free]
    if taken:
        raise UsageError(
            f"{fold(taken)} cannot take a place: in a job, cordoned, reserved or no standby",
            hint="brctl standby list",
        )


@dataclass(frozen=True, slots=True)
class OpenFaults:
    """What stands against nodes that are about to be given back.

    Attributes:
        lines: A sentence each.
        age_s: Of the newest look; None when they were never looked at.
    """

    lines: tuple[str, ...]
    age_s: float | None


async def standing_against(settings: Settings, names: Sequence[str], *, look: bool) -> OpenFaults:
    """Open verdicts on these nodes, and what the newest sweep or a look right now saw of them."""
    open_ones = [s.verdict for s in open_verdicts(settings.state_dir)]
    lines = [
        f"{v.id} {v.confidence.value.upper()} {v.fault.value} on {fold(set(v.nodes) & set(names))}"
        for v in open_ones
        if set(v.nodes) & set(names)
    ]
    async with open_controller(settings) as controller:
        if look:
            swept: Sequence[NodeHealth] = (
                await sweep_nodes(controller, names, Question(), None)
            ).nodes
            age_s: float | None = 0.0
        else:
            known = await survey(controller, names)
            swept = [known.health[name] for name in names if name in known.health]
            age_s = known.age_s if swept else None
    lines += [_in_words(node) for node in swept if node.health is not Health.OK]
    return OpenFaults(tuple(lines), age_s)


def _in_words(node: NodeHealth) -> str:
    check, detail = reason_of(node)
    return f"{node.node} {node.health.value} {check}: {detail}"


def _carried(jobs: Iterable[Job], names: Iterable[str], text: str) -> str:
    found = [job.name for job in jobs if not set(names).isdisjoint(job.nodes)]
    if len(found) != 1:
        raise UsageError(
            f"{text} carries {', '.join(found) or 'no job'}", hint="name it with --job"
        )
    return found[0]
