"""A scheduler that is asked again while it does not answer: for runs, which must not give up early.

An API server that is restarted, or slurmctld that fails over, is away for seconds; a run that gave
up meanwhile would leave a stopped job behind. Every method of a backend is safe to repeat, so the
whole of it is repeated. People who look do not wait: they get the error at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from brctl.backends.contract import (
    Backend,
    Cordon,
    ImagePull,
    Label,
    Reservation,
    StartReport,
    StopReport,
)
from brctl.model.errors import UnreachableError
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState

T = TypeVar("T")
PAUSES_S = (1.0, 2.0, 4.0, *(5.0,) * 11)
"""A control plane that is updated comes back within a minute, or people have to look at it."""


class PatientBackend:
    """Another backend, asked again while it does not answer; see `Backend`."""

    def __init__(
        self, backend: Backend, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._backend = backend
        self._pause = pause

    @property
    def name(self) -> str:
        return self._backend.name

    async def cordons(self) -> Mapping[str, Cordon]:
        return await self._asked(self._backend.cordons)

    async def cordon(self, nodes: Sequence[str], owner: str, reason: str, at: datetime) -> None:
        await self._asked(lambda: self._backend.cordon(nodes, owner, reason, at))

    async def uncordon(self, nodes: Sequence[str]) -> None:
        await self._asked(lambda: self._backend.uncordon(nodes))

    async def reservations(self) -> Mapping[str, Reservation]:
        return await self._asked(self._backend.reservations)

    async def reserve(self, node: str, owner: str, at: datetime) -> bool:
        return await self._asked(lambda: self._backend.reserve(node, owner, at))

    async def release(self, nodes: Sequence[str], owner: str) -> None:
        await self._asked(lambda: self._backend.release(nodes, owner))

    async def idle_nodes(self, job: Job | None = None) -> tuple[str, ...]:
        return await self._asked(lambda: self._backend.idle_nodes(job))

    async def labels(self, nodes: Sequence[str], key: str) -> Mapping[str, Label]:
        return await self._asked(lambda: self._backend.labels(nodes, key))

    async def label(self, nodes: Sequence[str], key: str, value: str, owner: str) -> None:
        await self._asked(lambda: self._backend.label(nodes, key, value, owner))

    async def unlabel(self, nodes: Sequence[str], key: str, owner: str) -> None:
        await self._asked(lambda: self._backend.unlabel(nodes, key, owner))

    async def work_on(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        return await self._asked(lambda: self._backend.work_on(nodes, jobs))

    async def evict(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        return await self._asked(lambda: self._backend.evict(nodes, jobs))

    async def place(self, job: Job) -> Job:
        return await self._asked(lambda: self._backend.place(job))

    async def pull_images(self, job: Job, nodes: Sequence[str]) -> Mapping[str, ImagePull]:
        return await self._asked(lambda: self._backend.pull_images(job, nodes))

    async def must_control(self, job: Job, verb: str) -> None:
        await self._asked(lambda: self._backend.must_control(job, verb))

    async def replace_nodes(self, job: Job, swaps: Mapping[str, str]) -> Job:
        return await self._asked(lambda: self._backend.replace_nodes(job, swaps))

    async def start_job(self, job: Job, checkpoint: str, incarnation: str) -> StartReport:
        return await self._asked(lambda: self._backend.start_job(job, checkpoint, incarnation))

    async def stop_job(self, job: Job, grace_s: float) -> StopReport:
        return await self._asked(lambda: self._backend.stop_job(job, grace_s))

    async def job_status(self, job: Job) -> JobRunState:
        return await self._asked(lambda: self._backend.job_status(job))

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        return await self._asked(lambda: self._backend.scheduler_view(job))

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        for seconds in PAUSES_S:
            try:
                return await ask()
            except UnreachableError:
                await self._pause(seconds)
        return await ask()
