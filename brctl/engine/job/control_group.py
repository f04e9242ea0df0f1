"""Nodes nobody asked about, asked whether they are reached, where most of the others are not."""

from collections.abc import Sequence

from brctl.engine.controller.wiring import Controller
from brctl.evidence.reach import unreached_together
from brctl.fanout.gather import gather
from brctl.model.command import Command
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import Sweep

CONTROLS = 16
"""So many say enough of the way from here; they are asked for nothing but an answer."""


async def ask_others(controller: Controller, sweep: Sweep) -> Sequence[NodeReport]:
    """Whether nodes beside those of a sweep are reached; asks none while most of its own were.

    `dx` of the three nodes that failed finds all it asked silent: others that answer show that
    the way is not what failed.
    """
    if unreached_together((node.report for node in sweep.nodes), {}) is None:
        return ()
    asked = {node.node for node in sweep.nodes}
    names = [name for name in controller.inventory.nodes if name not in asked]
    chosen = names[:: -(-len(names) // CONTROLS) or 1]
    answers = gather(
        controller.transport,
        controller.inventory.pick(chosen),
        lambda _node: Command(("true",), deadline_s=5.0, asks=("reach",)),
        limit=controller.settings.ssh.fanout,
    )
    return [NodeReport(a.node, a.outcome, detail=a.detail) async for a in answers]
