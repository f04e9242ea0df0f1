"""node.reboot: reboot nodes, and wait until each is another boot and answers over SSH again."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    FailureKind,
    NothingDone,
    Observation,
    VerbImplementation,
)
from brctl.model.command import Outcome
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

REBOOT = ("systemctl", "reboot")
BOOT_ID = ("cat", "/proc/sys/kernel/random/boot_id")
LOOK_S, ASK_S, ORDER_S = 5.0, 10.0, 30.0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GONE = (Outcome.DIED, Outcome.COMMAND_TIMED_OUT)
"""How a node that is going down ends the order to go down."""


class NodeReboot(VerbImplementation):
    """See the head of this file.

    The boot from before is kept in the run's folder, so that a run that died in between sees that
    the node rebooted and does not send it down again.
    """

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        nodes = arguments.nodes(args, "nodes")
        boots = [(_boot_before(context, node), await _boot_id(context, node)) for node in nodes]
        if any(not before for before, _ in boots):
            return Observation(done=False)
        done = all(now and now != before for before, now in boots)
        return Observation(
            done, {"rebooted": list(nodes)}, f"{fold(nodes)} rebooted" if done else ""
        )

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "rebooted"),)
        return tuple(
            Change(Sign.ALTER, node, "rebooted") for node in arguments.nodes(args, "nodes")
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        nodes, within_s = arguments.nodes(args, "nodes"), arguments.seconds(args, "within", "15m")
        await _refuse_carrying(context, nodes)
        await _note_boots(context, nodes)
        await asyncio.gather(*(self._reboot(context, node, within_s) for node in nodes))
        return ActionResult({"rebooted": list(nodes)}, say=f"{fold(nodes)} rebooted and answers")

    async def _reboot(self, context: RunContext, node: str, within_s: float) -> None:
        before = _boot_before(context, node)
        if await _boot_id(context, node) == before:
            await _order(context, node)
        started = context.clock.now()
        while (await _boot_id(context, node)) in ("", before):
            waited_s = (context.clock.now() - started).total_seconds()
            if waited_s > within_s:
                raise ActionFailed(
                    f"{node} is not back {waited_s:.0f} s after its reboot", FailureKind.TIMEOUT
                )
            await context.clock.pause(LOOK_S)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        return ActionResult(changed=False, say="a reboot cannot be undone")


async def _note_boots(context: RunContext, nodes: Sequence[str]) -> None:
    """Write down the boot of every node before the first goes down, or do nothing at all."""
    fresh = [node for node in nodes if not _boot_before(context, node)]
    boots = dict(
        zip(fresh, await asyncio.gather(*(_boot_id(context, n) for n in fresh)), strict=True)
    )
    mute = [node for node, boot in boots.items() if not boot]
    if mute:
        problem = f"{fold(mute)} does not say which boot it is; power-cycle it through its BMC"
        raise NothingDone(problem, FailureKind.TRANSPORT)
    for node, boot in boots.items():
        _boot_file(context, node).write_text(boot)


async def _order(context: RunContext, node: str) -> None:
    answer = await context.nodes.run_program(node, REBOOT, ORDER_S, root=True)
    if answer.outcome in _GONE or (answer.outcome is Outcome.ANSWERED and not answer.exit_status):
        return
    message = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
    raise ActionFailed(f"{node} does not reboot: {answer.detail or message or 'no message'}")


async def _boot_id(context: RunContext, node: str) -> str:
    """The identity of the running boot; "" while the node does not answer."""
    answer = await context.nodes.run_program(node, BOOT_ID, ASK_S)
    text = answer.stdout.decode("utf-8", "replace").strip()
    answered = answer.outcome is Outcome.ANSWERED and answer.exit_status == 0
    return text if answered and _UUID.fullmatch(text) else ""


def _boot_file(context: RunContext, node: str) -> Path:
    return context.run.folder / f"boot-before-{node}"


def _boot_before(context: RunContext, node: str) -> str:
    path = _boot_file(context, node)
    return path.read_text() if path.exists() else ""


async def _refuse_carrying(context: RunContext, nodes: Sequence[str]) -> None:
    for job in await context.jobs.all():
        state = await context.backend.job_status(job) if set(job.nodes) & set(nodes) else None
        alive = {job.node_of(rank) for rank in state.alive} if state else set()
        if alive & set(nodes):
            raise NothingDone(
                f"{fold(sorted(alive & set(nodes)))} carries ranks of {job.name}; stop it first"
            )
