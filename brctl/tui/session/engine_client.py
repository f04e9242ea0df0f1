"""What the terminal asks of the engine: look again, and the few things that change the world.

Every method is an engine call that the command line makes too; each dialog shows the equal line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook
from brctl.model.jobs.job_status import JobStatus
from brctl.model.runs.plan import Plan
from brctl.model.sweeps.sweep import NodeHealth


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """What the scheduler says: cordons with owner and reason, jobs where they run now.

    Attributes:
        guard: The eviction budget in the guard's own words.
    """

    cordons: Mapping[str, tuple[str, str]]
    jobs: tuple[Job, ...]
    guard: str = ""


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A job as its ranks were just asked: the look that is compared, and all they said."""

    look: JobLook
    status: JobStatus


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan that a person may start, and the words that start it.

    Attributes:
        words: What must be typed; see `confirmation_text`.
        command: The equal command line.
    """

    plan: Plan
    words: str
    command: str


class EngineClient(Protocol):
    """The engine as the terminal may use it."""

    async def placement(self) -> SchedulerState:
        """Ask the scheduler for cordons and jobs."""
        ...

    async def look_at_jobs(self) -> tuple[JobSeen, ...]:
        """Ask the ranks of every job where they stand; one light question a node."""
        ...

    async def sweep(self, names: Sequence[str], on_node: Callable[[NodeHealth], None]) -> str:
        """Sweep nodes at level 1; returns the sweep's id."""
        ...

    async def diagnose(self, names: Sequence[str], job: str) -> tuple[str, ...]:
        """Diagnose a job, or nodes; returns the ids of the verdicts."""
        ...

    async def propose(self, verdict_id: str) -> Proposal:
        """The plan of a verdict's playbook; changes nothing."""
        ...

    async def start(self, proposal: Proposal) -> str:
        """Start the run in a process of its own; returns its name."""
        ...

    def why_not_approve(self, run: str) -> str:
        """Why this person's yes would not count, "" when it would: the command line's own rule."""
        ...

    async def approve(self, run: str, typed: str) -> None:
        """Say yes to a waiting run."""
        ...

    async def deny(self, run: str) -> None:
        """Say no to a waiting run."""
        ...

    async def rollback(self, run: str) -> None:
        """Undo what a run changed, in a process of its own."""
        ...

    async def in_terminal(self, words: Sequence[str]) -> int:
        """Run one of brctl's own commands on the terminal; returns its exit code."""
        ...

    async def close(self) -> None:
        """Close connections; no run stops."""
        ...
