"""A sweep: checks on nodes, one SSH round trip per node, reports as they arrive."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

from brctl.fanout.contract import Transport
from brctl.fanout.gather import gather
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node
from brctl.model.root_access import RootAccess
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import NodeReport
from brctl.sweep.bundle import LOGIN_ONLY, pack_bundle
from brctl.sweep.parse import parse_report

ParametersFor = Callable[[Node, Check], Mapping[str, object]]
"""What a check's probe is told on one node, beside the check's own defaults."""


def no_parameters(_node: Node, _check: Check) -> Mapping[str, object]:
    """The check's defaults are enough."""
    return {}


async def sweep(
    transport: Transport,
    nodes: Sequence[Node],
    checks: Mapping[str, Check],
    parameters_for: ParametersFor = no_parameters,
    *,
    limit: int,
    root: RootAccess = LOGIN_ONLY,
    now: Callable[[], datetime] | None = None,
) -> AsyncGenerator[NodeReport, None]:
    """Yield one report per node as it arrives; a node that cannot answer yields why.

    Args:
        transport: How the nodes are reached.
        nodes: Each is asked once.
        checks: What is asked, by name.
        parameters_for: Overrides the check's parameters for a node.
        limit: Nodes in flight at once.
        root: How a check that needs root gets it.
        now: The engine's clock, for `received_at`; None leaves it out.
    """
    bundle = pack_bundle(checks)

    def command_for(node: Node) -> Command:
        parameters = {
            name: {
                **check.parameters,
                **parameters_for(node, check),
                "deadline_s": check.deadline_s,
            }
            for name, check in checks.items()
        }
        return bundle.command(node, parameters, root)

    async with aclosing(gather(transport, nodes, command_for, limit=limit)) as answers:
        async for answer in answers:
            yield parse_report(answer, checks, _came_at(answer, now) if now else None)


def _came_at(answer: CommandResult, now: Callable[[], datetime]) -> datetime:
    """When it came, not when it is read: a node's clock is judged by it.

    One node whose words take long to read would have the clocks of all that wait behind it slow.
    """
    if answer.came_at is not None:
        return answer.came_at
    if answer.ended_s is None:
        return now()
    waited_s = asyncio.get_running_loop().time() - answer.ended_s
    return now() - timedelta(seconds=max(0.0, waited_s))
