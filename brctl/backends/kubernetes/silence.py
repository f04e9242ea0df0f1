"""Ask nodes themselves whether they are there, before the control plane has noticed.

It takes 40 s to call a dead node NotReady, and until then its pods look alive. A node is only
called silent where others of the same job answer: where nobody does, it is about the way there.
"""

from collections.abc import Mapping, Sequence

from brctl.backends.kubernetes.control import AskNodes
from brctl.fanout.contract import Transport
from brctl.fanout.gather import gather
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Inventory

DEADLINE_S = 5.0
_NOT_THERE = frozenset(
    {Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.CONNECT_TIMED_OUT, Outcome.LOGIN_TIMED_OUT}
)


def asking_with(transport: Transport, inventory: Inventory, fanout: int) -> AskNodes:
    """Ask through the transport of the context."""

    async def ask(names: Sequence[str]) -> Mapping[str, str]:
        nodes = inventory.pick(name for name in names if name in inventory.nodes)
        command = Command(("true",), deadline_s=DEADLINE_S)
        stream = gather(transport, nodes, lambda _: command, limit=fanout)
        return silent_beside_others({answer.node: answer async for answer in stream})

    return ask


def silent_beside_others(answers: Mapping[str, CommandResult]) -> Mapping[str, str]:
    """Who is not there while others are, with the reason; pure."""
    if not any(a.outcome is Outcome.ANSWERED for a in answers.values()):
        return {}
    return {
        name: f"{a.detail or a.outcome.value}; what ran there may still run"
        for name, a in answers.items()
        if a.outcome in _NOT_THERE
    }
