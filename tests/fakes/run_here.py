"""Carry a run out in this process, over the cluster in a file."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from brctl.actions.context import RunContext
from brctl.engine.runs.carry_out import carry_out
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import Journal
from brctl.model.exit_codes import ExitCode
from tests.fakes.run_context import FakeContext


def carry(context: FakeContext, run_dir: Path) -> ExitCode:
    """Begin the run, or go on with it, until it ends or waits for a person."""

    @asynccontextmanager
    async def open_fake(_request: RunRequest) -> AsyncIterator[RunContext]:
        yield context

    return asyncio.run(carry_out(run_dir, open_fake, Journal))
