"""node.uncordon: put nodes back into service.

What stood on a node before is noted in the run's folder first: where the return is undone the node
gets its old reason again, by which guards know that it computed wrongly.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, Observation, VerbImplementation
from brctl.backends.contract import Cordon
from brctl.library.durable_files import write_atomic
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.model.units import parse_rfc3339, rfc3339

_OF_BRCTL = "brctl:"


class NodeUncordon(VerbImplementation):
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        names = arguments.nodes(args, "nodes")
        cordons = await context.backend.cordons()
        left = [name for name in names if name in cordons]
        return Observation(not left, {"uncordoned": list(names)}, f"{fold(names)} in service")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "cordoned -> schedulable"),)
        cordons = await context.backend.cordons()
        return tuple(
            Change(Sign.ALTER, name, f'cordoned "{cordons[name].reason}" -> schedulable')
            for name in arguments.nodes(args, "nodes")
            if name in cordons
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        names, cordons = arguments.nodes(args, "nodes"), await context.backend.cordons()
        before = [name for name in names if name in cordons]
        for name in before:
            _note(context, cordons[name])
        await context.backend.uncordon(before)
        out = {"uncordoned": before}
        return ActionResult(out, changed=bool(before), say=f"{fold(before)} in service")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        names = arguments.nodes(args, "nodes")
        for name in names:
            was = _noted(context, name)
            at = was.at or context.clock.now()
            await context.backend.cordon([name], was.owner, was.reason, at)
        return ActionResult({"cordoned": list(names)}, say=f"{fold(names)} cordoned again")


def _note_of(context: RunContext, node: str) -> Path:
    return context.run.folder / f"cordon-before-{node}.json"


def _note(context: RunContext, cordon: Cordon) -> None:
    at = rfc3339(cordon.at or context.clock.now())
    told = {"owner": cordon.owner, "reason": cordon.reason, "at": at}
    write_atomic(_note_of(context, cordon.node), json.dumps(told))


def _noted(context: RunContext, node: str) -> Cordon:
    """The cordon as it was; one that was not set through brctl becomes this run's own."""
    own = Cordon(node, context.owner_mark, "its return was undone", context.clock.now())
    try:
        told = read_foreign_json(_note_of(context, node).read_bytes())
        was = Cordon(node, str(told["owner"]), str(told["reason"]), parse_rfc3339(told["at"]))  # type: ignore[index]  # what else it may be is caught
    except (OSError, ForeignJsonError, ValueError, KeyError, TypeError):
        return own
    return was if was.owner.startswith(_OF_BRCTL) else replace(own, reason=was.reason)
