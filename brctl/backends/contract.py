"""Who schedules the nodes: cordons, standbys, and the ranks of a job. One contract, every site.

Every method that changes something is safe to repeat, and what it did is visible through the
methods that look, so that a run which died in between can be settled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState


@dataclass(frozen=True, slots=True)
class Cordon:
    """A node that takes no new work.

    Attributes:
        owner: `brctl:R-0012` for a run, `brctl:NAME` for a person through brctl, else the name the
            scheduler gives for whoever did it outside brctl.
        at: When; None when the scheduler does not say.
        lasting: False for a mark that the scheduler made itself and lifts itself, as soon as the
            node answers again; a cordon must outlive that.
    """

    node: str
    owner: str
    reason: str
    at: datetime | None
    lasting: bool = True


@dataclass(frozen=True, slots=True)
class Reservation:
    """A standby that a run has put aside."""

    node: str
    owner: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Label:
    """A label on a node.

    Attributes:
        owner: Who set this value through brctl; "" when somebody else did, or changed it since.
        former: What stood there before; None when there was no such label.
    """

    value: str
    owner: str
    former: str | None


def labelled(before: Label | None, value: str, owner: str) -> Label:
    """A label after an owner set it; setting it again keeps the first former value."""
    if before is None or before.value == value:
        return before or Label(value, owner, None)
    former = before.former if before.owner == owner else before.value
    return Label(value, owner, former)


def unlabelled(before: Label | None, owner: str) -> Label | None:
    """A label after its owner took it back; others' values stay."""
    if before is None or before.owner != owner:
        return before
    return None if before.former is None else Label(before.former, "", None)


@dataclass(frozen=True, slots=True)
class StopReport:
    """How the ranks of a job ended.

    Attributes:
        stopped: Ranks that ended on the first signal, or were gone already.
        killed: Ranks that had to be killed after the grace.
        stuck: Ranks that even SIGKILL did not end (a process in uninterruptible sleep).
        unreachable: Nodes that could not be asked, with the reason; their ranks count as lost, and
            may still run if the node comes back.
    """

    stopped: tuple[int, ...]
    killed: tuple[int, ...]
    stuck: tuple[int, ...]
    unreachable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StartReport:
    """Which ranks were started, and on which nodes that failed.

    Attributes:
        warm: Ranks that a process became which was parked for them.
        cold: Nodes whose parked processes could not be used, with the reason.
    """

    started: tuple[int, ...]
    failed: Mapping[str, str]
    warm: tuple[int, ...] = ()
    cold: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImagePull:
    """What became of pulling a job's images onto a node.

    Attributes:
        seconds: How long it took; None when they are not there.
        problem: Why they are not.
    """

    seconds: float | None
    problem: str = ""


class Backend(Protocol):
    """What every scheduler must let brctl do. Every implementation passes tests/contract."""

    @property
    def name(self) -> str:
        """`static`, `slurm` or `kubernetes`."""
        ...

    async def cordons(self) -> Mapping[str, Cordon]:
        """Every node out of service, whoever took it out."""
        ...

    async def cordon(self, nodes: Sequence[str], owner: str, reason: str, at: datetime) -> None:
        """Take nodes out of service; a node somebody else cordoned keeps its owner."""
        ...

    async def uncordon(self, nodes: Sequence[str]) -> None:
        """Put nodes back into service."""
        ...

    async def reservations(self) -> Mapping[str, Reservation]:
        """Standbys that runs have put aside."""
        ...

    async def reserve(self, node: str, owner: str, at: datetime) -> bool:
        """Put a standby aside; False when somebody else has it already."""
        ...

    async def release(self, nodes: Sequence[str], owner: str) -> None:
        """Give back what this owner put aside; others' reservations stay."""
        ...

    async def idle_nodes(self, job: Job | None = None) -> tuple[str, ...]:
        """Ordinary nodes that could take a job's ranks when the standbys do not suffice.

        Whether brctl's own jobs are on them is for the caller to look. A job that is named tells
        which nodes would refuse its ranks.
        """
        ...

    async def labels(self, nodes: Sequence[str], key: str) -> Mapping[str, Label]:
        """A label of these nodes; nodes without it are left out."""
        ...

    async def label(self, nodes: Sequence[str], key: str, value: str, owner: str) -> None:
        """Set a label, keeping what stood there for `unlabel`."""
        ...

    async def unlabel(self, nodes: Sequence[str], key: str, owner: str) -> None:
        """Put the former value back where this owner's value still stands."""
        ...

    async def work_on(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """What a drain of these nodes waits for, by node; nodes without work are left out."""
        ...

    async def evict(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """Ask the work on nodes to go, as far as this scheduler can; never waits.

        Returns:
            What is still there, by node, in one sentence that names who does not go and why.
        """
        ...

    async def place(self, job: Job) -> Job:
        """The job on the nodes it runs on now, in rank order."""
        ...

    async def pull_images(self, job: Job, nodes: Sequence[str]) -> Mapping[str, ImagePull]:
        """Bring a job's images to nodes it does not run on; nothing where ranks have none."""
        ...

    async def must_control(self, job: Job, verb: str) -> None:
        """Whether brctl may let a job be `started`, `stopped` or `moved`, asked before it acts.

        Raises:
            UsageError: Somebody else alone does it, who would undo it; with the words to type.
        """
        ...

    async def replace_nodes(self, job: Job, swaps: Mapping[str, str]) -> Job:
        """Put nodes into the places of others; a swap that is done already changes nothing."""
        ...

    async def start_job(self, job: Job, checkpoint: str, incarnation: str) -> StartReport:
        """Start every rank, from a checkpoint directory or "" for the job's own choice.

        Ranks of the same incarnation that already run are left alone; ranks of another one make
        the start fail on that node.
        """
        ...

    async def stop_job(self, job: Job, grace_s: float) -> StopReport:
        """End every rank on every node that answers, SIGTERM first."""
        ...

    async def job_status(self, job: Job) -> JobRunState:
        """Which ranks have a process."""
        ...

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        """What the scheduler itself knows of the ranks; None where only their nodes know more.

        Asks no node, so that a look at a job costs no second round trip to its nodes.
        """
        ...
