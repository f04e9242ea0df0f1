"""One command on nodes, for `run` and `cp`: progress for people, and Ctrl-C loses no answer."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from brctl.cli.live_output import Counted
from brctl.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from brctl.engine.controller.command_input import CommandInput
    from brctl.engine.controller.reach import Chosen, CommandResults
    from brctl.fanout.contract import Streams
    from brctl.library.config import Settings
    from brctl.model.command import Command
    from brctl.model.inventory import Node


def run_on_chosen(
    settings: "Settings",
    chosen: "Chosen",
    command: "Command",
    stdin: "CommandInput | None" = None,
    shown: Counted | None = None,
) -> tuple["CommandResults", ExitCode | None]:
    """What came until all answered or a person had enough; then the exit code says so.

    Without `stdin` a command reads `command.stdin`, nothing passes while it runs, and transports
    are fastest. `shown` is what is seen before the end.
    """
    from brctl.engine.controller.reach import CommandResults, run_on_nodes

    results = CommandResults(chosen.names)
    shown = shown or Counted(len(chosen.nodes))

    async def run() -> None:
        task = asyncio.current_task()
        shown.stop = task.cancel if task else shown.stop
        await run_on_nodes(
            settings, chosen, lambda _: command, results, shown.on_answer, _streams(stdin, shown)
        )

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        raise shown.broken or asyncio.CancelledError from None
    except KeyboardInterrupt:
        return results, ExitCode.INTERRUPTED
    return results, None


def _streams(stdin: "CommandInput | None", shown: Counted) -> "Callable[[Node], Streams] | None":
    from brctl.fanout.contract import Streams

    if stdin is None:
        return None
    return lambda node: Streams(stdin.pieces, shown.on_output(node.name))
