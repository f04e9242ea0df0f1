"""One command on nodes, for `run` and `cp`: progress for people; whatever ends it, answers stay."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from brctl.cli import output
from brctl.cli.disk_trouble import disk_trouble
from brctl.cli.invocation import Invocation, leave
from brctl.cli.live_output import Counted
from brctl.model.errors import BrctlError, UnavailableError, UsageError
from brctl.model.exit_codes import ExitCode

Ended = KeyboardInterrupt | UsageError | OSError | None
"""What ended a command before all nodes had answered: a person, or its input."""

if TYPE_CHECKING:
    from brctl.engine.controller.command_input import CommandInput
    from brctl.engine.controller.reach import Chosen, CommandResults
    from brctl.fanout.contract import Streams
    from brctl.library.config import Settings
    from brctl.model.command import Command
    from brctl.model.inventory import Node
    from brctl.view.notices.page import Page


def run_on_chosen(
    settings: "Settings",
    chosen: "Chosen",
    command: "Command",
    stdin: "CommandInput | None" = None,
    shown: Counted | None = None,
) -> tuple["CommandResults", Ended]:
    """What came until all answered, and what ended it before that.

    Without `stdin` a command reads `command.stdin`, nothing passes while it runs, and transports
    are fastest. `shown` is what is seen before the end.
    """
    from brctl.engine.controller.reach import CommandResults, run_on_nodes

    results, begun = CommandResults(chosen.names), set[str]()
    shown = shown or Counted(len(chosen.nodes))

    def command_for(node: "Node") -> "Command":
        begun.add(node.name)
        return command

    async def run() -> None:
        task = asyncio.current_task()
        shown.stop = task.cancel if task else shown.stop
        await run_on_nodes(
            settings, chosen, command_for, results, shown.on_answer, _streams(stdin, shown)
        )

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        raise shown.broken or asyncio.CancelledError from None
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, UsageError, OSError) as ended:
        if not begun and not isinstance(ended, KeyboardInterrupt):
            raise
        return results, ended
    return results, None


def hold_where_needed(
    settings: "Settings", chosen: "Chosen", stdin: "CommandInput", deadline_s: float
) -> tuple["Settings", "CommandInput"]:
    """Input as the transport takes it: where that is whole, as many nodes at once as fit.

    It is read here and once: one that never ends would hold up every node until its deadline.
    """
    from brctl.engine.controller.command_input import NoInput, hold
    from brctl.engine.controller.copying import bounded_fanout
    from brctl.fanout.choose import takes_input_whole

    if isinstance(stdin, NoInput) or not takes_input_whole(settings.ssh, chosen.nodes):
        return settings, stdin
    limit_s = settings.command_limit_s
    held = asyncio.run(hold(stdin, deadline_s if limit_s is None else min(deadline_s, limit_s)))
    return at_once(settings, bounded_fanout(len(held.data), settings.ssh.fanout)), held


def at_once(settings: "Settings", nodes: int) -> "Settings":
    """The same with so many nodes in flight."""
    return replace(settings, ssh=replace(settings.ssh, fanout=nodes))


def finish_ended(
    invocation: Invocation, page: "Page", context: str, ended: Ended, *, written: bool = False
) -> NoReturn:
    """Write what came, unless that was done as it came, and why not all came."""
    if isinstance(ended, KeyboardInterrupt):
        page = replace(page, exit_code=ExitCode.INTERRUPTED)
    elif ended is not None:
        page = output.with_error(page, _error_of(ended))
    if written:
        leave(page.exit_code)
    invocation.finish(page, context)


def _error_of(ended: UsageError | OSError) -> BrctlError:
    if isinstance(ended, UsageError):
        return ended
    hint = "the answers so far are shown"
    return disk_trouble(ended) or UnavailableError(f"the input failed: {ended}", hint=hint)


def _streams(stdin: "CommandInput | None", shown: Counted) -> "Callable[[Node], Streams] | None":
    from brctl.fanout.contract import Streams

    if stdin is None:
        return None
    return lambda node: Streams(stdin.pieces, shown.on_output(node.name))
