"""Everything a command needs, opened once: who is there, how to reach them, what to run."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from brctl.backends.contract import Backend
from brctl.backends.open import open_backend
from brctl.engine.clock import now
from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Transport
from brctl.inventory.load import load_inventory
from brctl.library.checks import load_checks
from brctl.library.config import Settings
from brctl.library.jobs import load_job
from brctl.library.shipped import shipped_dir
from brctl.model.check import Check
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.inventory import Inventory
from brctl.model.job import Job


@dataclass(frozen=True, slots=True)
class World:
    """One context, opened.

    Attributes:
        jobs: Declared jobs by name, on the nodes the backend says they run on now.
        now: The clock; the only one.
    """

    settings: Settings
    inventory: Inventory
    jobs: Mapping[str, Job]
    checks: Mapping[str, Check]
    transport: Transport
    backend: Backend
    now: Callable[[], datetime] = now

    @property
    def state_dir(self) -> Path:
        return self.settings.state_dir

    def job(self, name: str | None) -> Job:
        """The job of this name, or the only one there is.

        Raises:
            UsageError: There is no such job, or there are several and none was named.
        """
        if name is None and len(self.jobs) == 1:
            return next(iter(self.jobs.values()))
        if name in self.jobs:
            return self.jobs[name]
        if name is None:
            raise UsageError(f"which job? known: {', '.join(sorted(self.jobs)) or 'none'}")
        raise UsageError(f"no job `{name}`; {did_you_mean(name, self.jobs)}")


@asynccontextmanager
async def open_world(settings: Settings) -> AsyncIterator[World]:
    """Open a context and close its connections whatever happens."""
    os.umask(0o077)
    inventory = load_inventory(settings)
    checks = load_checks(
        (shipped_dir("checks"), *(directory / "checks" for directory in settings.library_dirs))
    )
    jobs = [load_job(path) for path in settings.jobs]
    transport = open_transport(settings.ssh, nodes=inventory.nodes)
    try:
        backend = open_backend(settings, transport, inventory)
        placed = {job.name: await backend.place(job) for job in jobs}
        yield World(settings, inventory, placed, checks, transport, backend)
    finally:
        await transport.close()
