"""Everything a screen may show, read at one moment. Frozen, so that a worker can hand it over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.standby.pool import Pool
from brctl.model.alert import AlertIncident
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.trends import Trends
from brctl.model.sweeps.sweep import Health
from brctl.model.watch.snapshot import WatchSnapshot
from brctl.playbook.run import Run, UnreadableRun
from brctl.tui.rows.bisect_rows import BisectFact


class NodeState(StrEnum):
    """What one character of the heatmap says about a node."""

    CRITICAL = "crit"
    UNKNOWN = "unknown"
    WARNING = "warn"
    UNSWEPT = "not swept"
    CORDONED = "cordoned"
    STANDBY = "spare"
    OK = "ok"


_OF_HEALTH = {
    Health.CRITICAL: NodeState.CRITICAL,
    Health.UNKNOWN: NodeState.UNKNOWN,
    Health.WARNING: NodeState.WARNING,
}


@dataclass(frozen=True, slots=True)
class NodeFact:
    """What is known of one node.

    Attributes:
        health: From the newest sweep that asked it; None when none did.
        check: The check that decided, "" for a healthy node.
        cordon: Owner and reason, or None.
    """

    node: Node
    health: Health | None = None
    check: str = ""
    detail: str = ""
    at: datetime | None = None
    cordon: tuple[str, str] | None = None
    job: str = ""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def state(self) -> NodeState:
        """A cordon comes first: somebody works on this node. Never swept is not OK."""
        if self.cordon is not None:
            return NodeState.CORDONED
        if self.health is None:
            return NodeState.UNSWEPT
        if self.health in _OF_HEALTH:
            return _OF_HEALTH[self.health]
        return NodeState.STANDBY if self.node.role is NodeRole.STANDBY else NodeState.OK


@dataclass(frozen=True, slots=True)
class Facts:
    """The state of one context as the disk holds it.

    Attributes:
        swept_at: Start of the newest sweep; None when nothing was swept yet.
        scheduler_asked: Cordons are known, and jobs where they run now; else job.yaml's nodes.
        guard: The eviction budget in one sentence, "" when it is not known.
        alerts: What alerts from outside have opened.
        pool: The standbys, as they were last asked.
        looks: The newest look at each job that was ever looked at, whoever looked.
        seen: What the ranks of a job said when this terminal last asked them.
        past: This terminal's looks at a job, oldest first.
        watch: The watcher of this context, as its folder has it.
        machine: This one's name, beside that of a watcher's leader.
        trends: The health of jobs over time, by name.
        troubles: What could not be read, in sentences; shown, never hidden.
    """

    context: str
    scheduler: str
    readonly: bool
    user: str
    read_at: datetime
    inventory: Inventory
    nodes: tuple[NodeFact, ...] = ()
    jobs: tuple[Job, ...] = ()
    verdicts: tuple[StoredVerdict, ...] = ()
    runs: tuple[Run | UnreadableRun, ...] = ()
    bisects: tuple[BisectFact, ...] = ()
    swept_at: datetime | None = None
    scheduler_asked: bool = False
    guard: str = ""
    notes: Mapping[str, tuple[tuple[datetime, str, str], ...]] = field(default_factory=dict)
    alerts: tuple[AlertIncident, ...] = ()
    pool: Pool = field(default_factory=Pool)
    looks: Mapping[str, JobLook] = field(default_factory=dict)
    seen: Mapping[str, JobStatus] = field(default_factory=dict)
    past: Mapping[str, tuple[JobLook, ...]] = field(default_factory=dict)
    trends: Mapping[str, Trends] = field(default_factory=dict)
    watch: WatchSnapshot = field(default_factory=WatchSnapshot)
    machine: str = ""
    troubles: tuple[str, ...] = ()

    @property
    def open_verdicts(self) -> tuple[StoredVerdict, ...]:
        """Verdicts nobody has acted on, newest first."""
        return tuple(s for s in self.verdicts if s.state is VerdictState.OPEN)

    @property
    def waiting_runs(self) -> tuple[Run, ...]:
        """Runs that wait for a person, newest first."""
        return tuple(r for r in self.runs if isinstance(r, Run) and r.waiting)

    @property
    def troubled_jobs(self) -> tuple[JobLook, ...]:
        """Newest looks that found a job standing still, or could not tell."""
        known = (self.looks[job.name] for job in self.jobs if job.name in self.looks)
        return tuple(look for look in known if look.in_trouble)

    def job(self, name: str) -> Job | None:
        """The job of this name."""
        return next((job for job in self.jobs if job.name == name), None)

    def verdict(self, verdict_id: str) -> StoredVerdict | None:
        """The stored verdict of this id."""
        return next((s for s in self.verdicts if s.verdict.id == verdict_id), None)

    def run(self, name: str) -> Run | UnreadableRun | None:
        """The run of this name."""
        return next((r for r in self.runs if r.name == name), None)

    def node(self, name: str) -> NodeFact | None:
        """The node of this name."""
        return next((n for n in self.nodes if n.name == name), None)
