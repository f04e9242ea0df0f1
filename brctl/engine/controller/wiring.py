"""Everything a command needs, opened once: who is there, how to reach them, what to run."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from brctl.backends.contract import Backend
from brctl.backends.open import open_backend
from brctl.backends.patient import PatientBackend
from brctl.engine.controller.clock import now
from brctl.engine.controller.late_transport import LateTransport
from brctl.evidence.baseline import Baseline
from brctl.fanout.contract import Transport
from brctl.inventory.commands import Moments
from brctl.inventory.load import load_inventory
from brctl.journal.code_ledger import CodeLedger, ledger_dir, with_code
from brctl.library.baselines import load_baseline
from brctl.library.checks import usable_checks
from brctl.library.config import Settings
from brctl.library.jobs import load_job
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.sweeps.check import Check

if TYPE_CHECKING:
    from brctl.engine.controller.past import Past
    from brctl.evidence.logs.signature import Signature


@dataclass(frozen=True)
class Controller:
    """One context, opened: who is there, what runs, and how to reach it.

    Attributes:
        jobs: Declared jobs by name, on the nodes the backend says they run on now, with the code
            their ledgers say they run now.
        now: The clock; the only one.
        past: Where a diagnosis finds what earlier ones left; None for the state directory.
    """

    settings: Settings
    inventory: Inventory
    jobs: Mapping[str, Job]
    transport: Transport
    backend: Backend
    now: Callable[[], datetime] = now
    past: "Past | None" = None

    @cached_property
    def checks(self) -> Mapping[str, Check]:
        """Shipped and site checks by name; read when first asked for."""
        return self._checks_read[0]

    @property
    def unusable_checks(self) -> Mapping[str, str]:
        """Why each check of the site that is left out cannot be used."""
        return self._checks_read[1]

    @cached_property
    def _checks_read(self) -> tuple[Mapping[str, Check], Mapping[str, str]]:
        return usable_checks(self.settings.library_dirs)

    @cached_property
    def log_signatures(self) -> "tuple[Signature, ...]":
        """Shipped log rules and the site's own, which come first.

        Raises:
            ConfigError: A rule file of the site is not valid.
        """
        # Hundreds of patterns are compiled on import; most commands read no log.
        from brctl.library.log_rules import load_log_rules, signatures_with

        return signatures_with(load_log_rules(self.settings.library_dirs))

    @cached_property
    def baseline(self) -> Baseline | None:
        """What `check learn` found normal for this fleet; None when nothing was learned."""
        path = self.settings.baseline
        return load_baseline(path) if path is not None else None

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
        if name is not None and name in self.jobs:
            return self.jobs[name]
        if name is None:
            raise which_job(self.jobs)
        raise UsageError(f"no job `{name}`; {did_you_mean(name, self.jobs)}")


def which_job(jobs: Mapping[str, Job]) -> UsageError:
    """Nothing says which job is meant."""
    known = ", ".join(sorted(jobs)) or "none"
    hint = "" if jobs else "brctl job init writes one from a running job; list it under jobs:"
    return UsageError(f"which job? known: {known}", hint=hint or None)


@asynccontextmanager
async def open_controller(
    settings: Settings, *, patient: bool = False, place: bool = True, told: Moments | None = None
) -> AsyncIterator[Controller]:
    """Open a context and close its connections whatever happens.

    A run is patient with a scheduler that does not answer; a person is told at once. Whoever only
    wants to know which nodes a text means need not wait until the jobs are found, too: without
    `place` they are on the nodes their files name. A scheduler that told its nodes between two
    moments is not asked for them again.
    """
    os.umask(0o077)
    inventory = load_inventory(settings, told)
    jobs = [load_job(path) for path in settings.jobs]
    transport = LateTransport(settings, inventory.nodes)
    try:
        backend = open_backend(settings, transport, inventory)
        backend = PatientBackend(backend) if patient else backend
        placed = await _placed(settings, backend, jobs) if place else _declared(settings, jobs)
        yield Controller(settings, inventory, placed, transport, backend)
    finally:
        await transport.close()


async def with_jobs_placed(controller: Controller) -> Controller:
    """The context with its jobs where they run now, itself when none moved.

    Whoever keeps it open for long asks again: a run in another process may have swapped nodes.
    """
    jobs = tuple(controller.jobs.values())
    placed = await _placed(controller.settings, controller.backend, jobs)
    return controller if placed == controller.jobs else replace(controller, jobs=placed)


async def _placed(settings: Settings, backend: Backend, jobs: Sequence[Job]) -> Mapping[str, Job]:
    found = await asyncio.gather(*(backend.place(job) for job in jobs))
    return _declared(settings, found)


def _declared(settings: Settings, jobs: Iterable[Job]) -> Mapping[str, Job]:
    return {job.name: _with_code(settings, job) for job in jobs}


def _with_code(settings: Settings, job: Job) -> Job:
    ledger = CodeLedger(ledger_dir(settings.state_dir, settings.context, job.name))
    return with_code(job, ledger)
