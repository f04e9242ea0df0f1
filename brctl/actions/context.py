"""What a verb and a guard may use of the world: one context, composed of small capabilities.

Each capability is declared here once, implemented once in `engine/runs/capabilities.py`, and stands
on a simulated cluster in the tests. A verb takes what it needs: `context.backend.cordon(...)`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from brctl.backends.contract import Backend
from brctl.journal.code_ledger import CodeLedger
from brctl.journal.wanted_order import WantedOrderFile
from brctl.library.config import SshSettings
from brctl.library.guards import SiteGuards
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.rank_dumps import RankDumps
from brctl.model.localisation import Bisection, GroupResult
from brctl.model.runs.calendar import Calendar
from brctl.model.sweeps.burnin import Burnin
from brctl.model.sweeps.corruption import CorruptionOrder, CorruptionSearch
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth
from brctl.model.verdict import Verdict
from brctl.notify.notifier import Notifier
from brctl.playbook.placement.price import PlacePrice
from brctl.view.incident import Incident
from brctl.view.notices.contents import RunFacts


class Clock(Protocol):
    """Time; only the engine reads it."""

    def now(self) -> datetime:
        """This moment, UTC."""
        ...

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        ...


class NodeAccess(Protocol):
    """Programs on single nodes."""

    async def command(self, node: str, command: Command) -> CommandResult:
        """Run one program on one node."""
        ...

    async def run_program(
        self, node: str, argv: Sequence[str], deadline_s: float, *, root: bool = False
    ) -> CommandResult:
        """Run one program on a node; as root with the configured prefix of `ssh.sudo`."""
        ...

    async def select(self, text: str) -> tuple[str, ...]:
        """The nodes a text means; see `brctl/inventory/select.py`."""
        ...

    def wait_less_for_silent(self, nodes: Sequence[str]) -> None:
        """Wait less for those of them that gave no connection to the diagnosis naming them."""
        ...


class Jobs(Protocol):
    """The training jobs, on the nodes they run on now and with the code they run now."""

    async def get(self, name: str) -> Job:
        """One job."""
        ...

    async def all(self) -> Sequence[Job]:
        """Every job of this context."""
        ...

    def code_ledger(self, job: str) -> CodeLedger:
        """The record of a job's code changes."""
        ...

    def wanted_order(self, job: str) -> WantedOrderFile:
        """The rank order that waits for a job's next restart."""
        ...

    async def progress(self, job: Job) -> JobStatus:
        """What the ranks of a job say about themselves."""
        ...

    async def dump_ranks(
        self, job: Job, folder: Path, nodes: Sequence[str], within_s: float | None
    ) -> RankDumps:
        """Keep stacks and flight recorders of a job's ranks, of those that answer in time."""
        ...


class Sweeps(Protocol):
    """Checks on nodes, and what the newest sweep knew."""

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        """Run the checks up to a level on nodes and judge each."""
        ...

    async def record(
        self, nodes: Sequence[str], job: Job | None
    ) -> tuple[Sequence[NodeHealth], bytes]:
        """Look at nodes, and a job on them, as `dx` does; and all it judged by as one file."""
        ...

    async def recording_of(self, verdict: str) -> bytes | None:
        """The look that came to a verdict, with all it judged by, as one file; None for none."""
        ...

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        """Run one check on one node with parameters of its own."""
        ...

    async def burn_in(
        self, nodes: Sequence[str], level: int, duration_s: float, stop_on: Sequence[str]
    ) -> Burnin:
        """Load nodes and check every result.

        Raises:
            GuardError: A job runs on one of them.
        """
        ...

    def computed_wrongly(self) -> Mapping[str, datetime]:
        """Nodes that a burn-in convicted of wrong results, with the newest end of such a one."""
        ...

    def ailing(self) -> tuple[frozenset[str], frozenset[str]]:
        """Nodes the newest sweep found sick, and those nothing fresh is known of."""
        ...


class Search(Protocol):
    """Collectives in groups of nodes, to find who fails them."""

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

    async def locate_corruption(
        self, job: Job, order: CorruptionOrder, tell: Callable[[str], None]
    ) -> CorruptionSearch:
        """Make every node of a stopped job compute what is known, and replay the job in groups."""
        ...

    async def test_groups(
        self, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
    ) -> Sequence[GroupResult]:
        """Run one collective in disjoint groups side by side."""
        ...


class Standbys(Protocol):
    """The standby pool."""

    def best_first(self, job: str = "") -> tuple[str, ...]:
        """Its nodes, the best prepared for a job first."""
        ...

    def start_s(self, job: str) -> Mapping[str, float]:
        """How much longer a job's start takes with each than with a parked one.

        Those that did not pass their self-checks are left out.
        """
        ...

    def place_price(self) -> PlacePrice:
        """What a further domain under a job's widest group costs."""
        ...

    def uptime_s(self, machines: int) -> float:
        """How long a job on so many nodes is expected to run until it loses one."""
        ...

    def warmed_at(self) -> Mapping[str, datetime]:
        """When each was warmed, of those that were."""
        ...

    async def enlist(self, node: str) -> str:
        """Warm a node and put it into the pool; why not, or "" when it is in."""
        ...

    async def dismiss(self, nodes: Sequence[str]) -> None:
        """Take nodes out of the pool; they stay in the inventory."""
        ...


class Verdicts(Protocol):
    """What was decided, and whether it still holds."""

    def get(self, verdict_id: str) -> Verdict:
        """One verdict."""
        ...

    async def still_true(self, verdict: Verdict) -> bool | None:
        """Whether its nodes still show it; None when that could not be looked at."""
        ...


class People(Protocol):
    """Who is trusted with what."""

    def groups_of(self, person: str) -> Collection[str]:
        """The unix groups of a person."""
        ...


class Calendars(Protocol):
    """Maintenance windows and freezes of the site."""

    def read(self, name: str) -> Calendar:
        """One calendar around this moment; one that nobody can read says so."""
        ...


class ThisRun(Protocol):
    """The run on whose behalf all is done: its name stands on everything it leaves."""

    @property
    def name(self) -> str:
        """`R-0012`."""
        ...

    @property
    def folder(self) -> Path:
        """Its journal folder."""
        ...

    def facts(self) -> RunFacts:
        """The run as its journal tells it now."""
        ...

    def note(self, text: str) -> None:
        """Tell whoever follows the run what a step waits for."""
        ...

    def incident(self) -> Incident:
        """The incident it belongs to, as far as it went."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Everything a run may use.

    Attributes:
        name: Of the configuration's context.
        guards: Limits and policies of the site's files.
        ssh: How nodes are reached, for programs that log in by themselves.
    """

    name: str
    state_dir: Path
    inventory: Inventory
    guards: SiteGuards
    ssh: SshSettings
    backend: Backend
    notifier: Notifier
    clock: Clock
    nodes: NodeAccess
    jobs: Jobs
    sweeps: Sweeps
    search: Search
    standbys: Standbys
    verdicts: Verdicts
    people: People
    calendars: Calendars
    run: ThisRun

    @property
    def owner_mark(self) -> str:
        """The name under which this run cordons and reserves."""
        return f"brctl:{self.run.name}"
