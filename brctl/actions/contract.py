"""What a verb is: look, say what would change, change it, undo it, look again.

A verb knows what it did by marks in the world (the owner of a cordon, the incarnation of a rank),
never by its own memory: the process that changed something may be gone when somebody asks. So
`apply` and `undo` are safe to repeat, and `undo` touches only what carries this run's mark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from brctl.backends.contract import Backend
from brctl.journal.code_ledger import CodeLedger
from brctl.library.config import SshSettings
from brctl.model.answer import Answer, Command
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.localisation import Bisection, GroupResult
from brctl.model.runs.plan import Change
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.burnin import Burnin
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth
from brctl.notify.notifier import Notifier
from brctl.view.incident import Incident
from brctl.view.notices.notice import RunFacts


class FailureKind(StrEnum):
    """What `retry.only` can name."""

    TRANSPORT = "transport"
    TIMEOUT = "timeout"
    SCHEDULER = "scheduler"
    OTHER = "other"


class ActionFailed(Exception):  # noqa: N818 - a result of the world, not a mistake in the program
    """A verb could not do what it was asked; the world may be partly changed."""

    def __init__(self, message: str, kind: FailureKind = FailureKind.OTHER) -> None:
        super().__init__(message)
        self.kind = kind


class NothingDone(ActionFailed):
    """A verb refused before it acted: the world is as it was."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a look at the world says about a verb.

    Attributes:
        done: The world is as the verb would leave it; None when that cannot be told.
        out: What `steps.ID.out` holds when it is done.
        say: One sentence for people.
        markless: What was done leaves no mark, so after a crash a person says whether to repeat it.
    """

    done: bool | None
    out: Arguments = field(default_factory=dict)
    say: str = ""
    markless: bool = False


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What a verb did."""

    out: Arguments = field(default_factory=dict)
    changed: bool = True
    say: str = ""


class Site(Protocol):
    """The part of the world a verb may use, bound to one run."""

    @property
    def run(self) -> str:
        """The run's name, `R-0012`."""
        ...

    @property
    def run_dir(self) -> Path:
        """The run's journal folder."""
        ...

    @property
    def backend(self) -> Backend:
        """Who schedules the nodes."""
        ...

    @property
    def inventory(self) -> Inventory:
        """Who is there."""
        ...

    @property
    def notifier(self) -> Notifier:
        """Who is told outside."""
        ...

    @property
    def ssh(self) -> SshSettings:
        """How nodes are reached, for programs that log in by themselves."""
        ...

    def facts(self) -> RunFacts:
        """The run as its journal tells it now."""
        ...

    def incident(self) -> Incident:
        """The incident this run belongs to, as far as it went."""
        ...

    def standbys(self, job: str = "") -> tuple[str, ...]:
        """The nodes of the standby pool, the best prepared for a job first."""
        ...

    def now(self) -> datetime:
        """This moment, UTC."""
        ...

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        ...

    async def job(self, name: str) -> Job:
        """A job on the nodes it runs on now."""
        ...

    async def jobs(self) -> Sequence[Job]:
        """Every job of this context, on the nodes it runs on now."""
        ...

    def code_ledger(self, job: str) -> CodeLedger:
        """The record of a job's code changes."""
        ...

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        """Run the checks up to a level on nodes and judge each."""
        ...

    async def bisect(
        self, nodes: Sequence[str], size_bytes: int, reps: int, budget_s: float
    ) -> Bisection:
        """Test nodes with collectives in groups and say which of them fail."""
        ...

    def replay_groups(self, job: Job) -> Sequence[Sequence[str]]:
        """The groups of the first of two rounds in which a job can be replayed.

        Raises:
            UsageError: Its job.yaml does not say how, or its nodes cannot be cut that way.
        """
        ...

    async def replay(self, job: Job, deadline_s: float) -> Bisection:
        """Replay a stopped job in two rounds of groups and say who fails in both."""
        ...

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        """Run one check on one node with parameters of its own."""
        ...

    async def progress(self, job: Job) -> JobStatus:
        """What the ranks of a job say about themselves."""
        ...

    async def command(self, node: str, command: Command) -> Answer:
        """Run one program on one node."""
        ...

    async def select(self, text: str) -> tuple[str, ...]:
        """The nodes a text means; see `brctl/inventory/select.py`."""
        ...

    async def enlist_standby(self, node: str) -> str:
        """Warm a node and put it into the pool; why not, or "" when it is in."""
        ...

    async def dismiss_standbys(self, nodes: Sequence[str]) -> None:
        """Take nodes out of the pool; they stay in the inventory."""
        ...

    async def run_program(
        self, node: str, argv: Sequence[str], deadline_s: float, *, root: bool = False
    ) -> Answer:
        """Run one program on a node; as root with the configured prefix of `ssh.sudo`."""
        ...

    async def burn_in(
        self, nodes: Sequence[str], level: int, duration_s: float, stop_on: Sequence[str]
    ) -> Burnin:
        """Load nodes and check every result.

        Raises:
            GuardError: A job runs on one of them.
        """
        ...

    async def test_groups(
        self, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
    ) -> Sequence[GroupResult]:
        """Run one collective in disjoint groups side by side."""
        ...

    async def dump_stacks(self, job: Job, folder: Path, nodes: Sequence[str]) -> tuple[int, ...]:
        """Keep the stacks of a job's ranks in a folder; the ranks that gave none."""
        ...


def owner_mark(site: Site) -> str:
    """The name under which a run cordons and reserves."""
    return f"brctl:{site.run}"


class Action(Protocol):
    """One verb; see the head of this file."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        """Look whether the world already is as asked."""
        ...

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        """What `apply` would change now; arguments may be unknown until the run."""
        ...

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        """Make it so.

        Raises:
            ActionFailed: It could not be done; what was changed carries this run's mark.
        """
        ...

    async def undo(self, site: Site, args: Arguments) -> ActionResult:
        """Take back what this run did, and nothing anybody else did."""
        ...

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        """Look again after acting: what the world says, not what was sent."""
        ...


class ReadOnly:
    """The halves of a verb that only looks: nothing is planned, nothing can be undone."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        """A look is never done already: the world may have moved."""
        return Observation(done=False)

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        return ()

    async def undo(self, site: Site, args: Arguments) -> ActionResult:
        return ActionResult(changed=False, say="nothing to undo")

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        return Observation(done=True)
