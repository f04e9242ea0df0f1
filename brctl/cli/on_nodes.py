"""One command on nodes, for `run` and `cp`: progress for people, and Ctrl-C loses no answer."""

import asyncio
from typing import TYPE_CHECKING

from brctl.cli.typed import counter
from brctl.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from brctl.engine.controller.reach import Chosen, CommandResults
    from brctl.library.config import Settings
    from brctl.model.command import Command


def run_on_chosen(
    settings: "Settings", chosen: "Chosen", command: "Command"
) -> tuple["CommandResults", ExitCode | None]:
    """What came until all answered or a person had enough; then the exit code says so."""
    from brctl.engine.controller.reach import CommandResults, run_on_nodes

    results = CommandResults(chosen.names)
    try:
        asyncio.run(run_on_nodes(settings, chosen, lambda _: command, results, counter()))
    except KeyboardInterrupt:
        return results, ExitCode.INTERRUPTED
    return results, None
