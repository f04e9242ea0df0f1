"""A transport in memory: nodes that answer, stay silent for a while, or break a promise."""

import asyncio
from collections.abc import Callable

from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node


def answered(node: Node, stdout: bytes = b"", exit_status: int = 0) -> CommandResult:
    return CommandResult(node.name, Outcome.ANSWERED, exit_status, stdout, b"", 0.0)


class FakeTransport:
    """Counts how many nodes are in flight; `waits` holds back a node until its event is set."""

    def __init__(self, answer: Callable[[Node, Command], CommandResult] | None = None) -> None:
        self._answer = answer or (lambda node, command: answered(node))
        self.waits: dict[str, asyncio.Event] = {}
        self.in_flight = 0
        self.most_in_flight = 0
        self.commands: list[tuple[str, Command]] = []

    async def run(self, node: Node, command: Command) -> CommandResult:
        self.commands.append((node.name, command))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            if node.name in self.waits:
                await self.waits[node.name].wait()
            return self._answer(node, command)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        pass
