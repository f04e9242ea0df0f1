"""The engine behind a recorded incident: it asks nobody and changes nothing, and says so."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.sweeps.sweep import NodeHealth
from brctl.tui.session.engine_client import JobSeen, Proposal, SchedulerState


class RecordedEngine:
    """See `EngineClient`."""

    def __init__(self, job: Job | None) -> None:
        self._jobs = (job,) if job else ()

    async def placement(self) -> SchedulerState:
        """Where the jobs were when they were looked at."""
        return SchedulerState({}, self._jobs)

    async def look_at_jobs(self) -> tuple[JobSeen, ...]:
        _refuse("looked at")

    async def sweep(self, names: Sequence[str], on_node: Callable[[NodeHealth], None]) -> str:
        _refuse("swept")

    async def diagnose(self, names: Sequence[str], job: str) -> tuple[str, ...]:
        _refuse("looked at")

    async def propose(self, verdict_id: str) -> Proposal:
        _refuse("fixed")

    async def start(self, proposal: Proposal) -> str:
        _refuse("fixed")

    def why_not_approve(self, run: str) -> str:
        return "this is a recorded incident"

    async def approve(self, run: str, typed: str) -> None:
        _refuse("approved")

    async def deny(self, run: str) -> None:
        _refuse("denied")

    async def rollback(self, run: str) -> None:
        _refuse("rolled back")

    async def in_terminal(self, words: Sequence[str]) -> int:
        _refuse("run")

    async def close(self) -> None:
        """Nothing was opened."""


def _refuse(done: str) -> NoReturn:
    raise UsageError(f"this is a recorded incident: nothing is {done}")
