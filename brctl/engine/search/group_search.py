"""Search nodes with collectives over SSH, for callers that want names back."""

from collections.abc import Sequence

from brctl.engine.controller.wiring import Controller
from brctl.engine.search.bisect import BisectOptions, bisect
from brctl.engine.search.bisect_inputs import labelled_leaves, leaves_for
from brctl.engine.search.group_preflight import preflight
from brctl.engine.search.group_runner import RoundOrder
from brctl.engine.search.group_runner_torch import TorchRunner
from brctl.engine.search.recorded import OnRound, SearchRecord, record_search
from brctl.localise.problem import SearchProblem
from brctl.model.localisation import Bisection, GroupResult

ALONE_S = 60.0
"""A collective inside one node that takes longer has hung."""


async def test_groups(
    controller: Controller, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
) -> tuple[GroupResult, ...]:
    """One collective in each group, all side by side; a group that cannot start has no result."""
    names = [node for group in groups for node in group]
    runner = TorchRunner(
        controller.transport, controller.inventory.nodes, controller.settings.ssh.fanout
    )
    try:
        before = await preflight(runner, names, RoundOrder(0, op, size_bytes, reps, (), ALONE_S))
        fit = tuple(group for group in groups if set(group) <= set(before.nodes))
        order = RoundOrder(1, op, size_bytes, reps, fit, ALONE_S)
        found = (await runner.run(order)).results if fit else ()
    finally:
        await runner.close()
    measured = dict(zip(fit, found, strict=True))
    return tuple(measured.get(group, GroupResult(reps, None)) for group in groups)


async def search_nodes(
    controller: Controller, names: Sequence[str], options: BisectOptions, reps: int
) -> Bisection:
    """What the group tests say of these nodes; recorded; the torch workers are ended."""
    runner = TorchRunner(
        controller.transport, controller.inventory.nodes, controller.settings.ssh.fanout
    )
    order = RoundOrder(0, options.op, options.size_bytes, reps, (), ALONE_S)
    try:
        before = await preflight(runner, tuple(names), order)
        known = labelled_leaves(controller.inventory, before.nodes)
        problem = SearchProblem(before.nodes, leaves_for(before.nodes, known), reps=reps)

        async def drive(tell: OnRound) -> Bisection:
            return await bisect(problem, options, runner, controller.now, tell, before)

        record = SearchRecord(controller.state_dir)
        return (await record_search(before.nodes, runner.name, drive, record)).result
    finally:
        await runner.close()
