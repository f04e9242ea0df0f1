"""Search nodes with collectives over SSH, for callers that have a world and want names back."""

from collections.abc import Sequence

from brctl.engine.bisect import BisectOptions, bisect
from brctl.engine.bisect_inputs import labelled_leaves, leaves_for
from brctl.engine.group_preflight import preflight
from brctl.engine.group_runner import RoundOrder
from brctl.engine.group_runner_torch import TorchRunner
from brctl.engine.wiring import World
from brctl.localise.problem import Problem
from brctl.model.localisation import Bisection

ALONE_S = 60.0
"""A collective inside one node that takes longer has hung."""


async def search_nodes(
    world: World, names: Sequence[str], options: BisectOptions, reps: int
) -> Bisection:
    """What the group tests say of these nodes; the torch workers are ended whatever happens."""
    runner = TorchRunner(world.transport, world.inventory.nodes, world.settings.ssh.fanout)
    order = RoundOrder(0, options.op, options.size_bytes, reps, (), ALONE_S)
    try:
        before = await preflight(runner, tuple(names), order)
        known = labelled_leaves(world.inventory, before.nodes)
        problem = Problem(before.nodes, leaves_for(before.nodes, known), reps=reps)
        return await bisect(problem, options, runner, world.now, before=before)
    finally:
        await runner.close()
