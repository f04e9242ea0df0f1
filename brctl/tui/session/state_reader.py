"""Read the state of a context from disk, without asking any node; nothing unreadable is hidden."""

import socket
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from brctl.engine.controller import clock
from brctl.engine.controller.people import person
from brctl.engine.incidents import alert_store, verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.job.look_store import last_look
from brctl.engine.runs.read_run import read_run
from brctl.engine.search.event_stream import TRAILS
from brctl.engine.standby.pool import Pool
from brctl.engine.standby.pool_file import load_pool
from brctl.engine.sweeps import node_states, sweep_file, sweep_store
from brctl.engine.sweeps.history_database import database_path
from brctl.engine.sweeps.node_states import Known, PastState
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.engine.watch.folder import WatchFolder
from brctl.inventory.load import load_inventory
from brctl.journal import incident_notes as notes
from brctl.journal.store import EVENTS, is_running, run_dirs
from brctl.library.config import Settings
from brctl.library.jobs import load_job
from brctl.model.errors import BrctlError, UnavailableError, UsageError
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.hang import StackAnalysis
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.trends import Trends
from brctl.model.sweeps.sweep import NodeHealth
from brctl.model.watch.snapshot import WatchSnapshot
from brctl.playbook.run import Run, UnreadableRun
from brctl.sweep.problems import reason_of
from brctl.tui.rows.bisect_rows import BisectFact
from brctl.tui.rows.measures import MEASURES, value_of
from brctl.tui.session.engine_client import JobSeen
from brctl.tui.session.facts import Facts, NodeFact

Result = TypeVar("Result")
Cordons = Mapping[str, tuple[str, str]]
_UNREADABLE = (BrctlError, OSError, ValueError, msgspec.MsgspecError, sqlite3.Error)
PAST_SHOWN = 100
RECORDS_SHOWN = 200
"""Newest records of the watcher; older ones are in its watch.ndjson."""
LOOKS_KEPT = 240
"""Looks at a job that are remembered: an hour of them, one every fifteen seconds."""
RUNS_READ = 100
"""Newest runs that are listed; older ones are in `brctl play history`."""


class StateReader(Protocol):
    """Where screens get their facts from; called in a worker thread, never by a widget."""

    def read(self) -> Facts:
        """Everything as it is now."""
        ...

    def node_health(self, name: str) -> NodeHealth | None:
        """One node's newest answers in full; None when it was never asked."""
        ...

    def node_past(self, name: str) -> Sequence[PastState]:
        """How one node's state changed, newest first."""
        ...

    def set_scheduler_state(self, cordons: Cordons, jobs: Sequence[Job], guard: str) -> None:
        """Take over what only the scheduler knows."""
        ...

    def add_job_looks(self, seen: Sequence[JobSeen], problem: str = "") -> None:
        """Take over what the ranks of the jobs said, or why they could not be asked."""
        ...

    def measure(self, colour: str) -> Mapping[str, float]:
        """One value a node for a colouring of the heatmap; nodes without one are left out."""
        ...

    def forget(self) -> None:
        """Read everything again next time, the inventory too."""
        ...

    def stacks(self, job: str) -> StackAnalysis:
        """What the newest captured stacks of a job say."""
        ...

    def add_note(self, incident: str, text: str) -> None:
        """Leave a note on an incident."""
        ...

    def export(self, name: str, text: str) -> Path:
        """Write an export; returns the file."""
        ...


@dataclass(frozen=True, slots=True)
class _CachedRun:
    """A run with the stamp its journal had when it was read, and whether a process owned it."""

    stamp: tuple[int, int]
    alive: bool
    run: Run


class DiskStateReader:
    """The state of one context: its inventory, and its state folder.

    Args:
        inventory: That of a recorded incident; None where the configuration says it.

    Attributes:
        now: The clock; that of a recorded incident stands still.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], datetime] = clock.now,
        inventory: Inventory | None = None,
    ) -> None:
        self._settings = settings
        self.now = now
        self._fixed_inventory = self._inventory = inventory
        self._known: Mapping[str, Known] = {}
        self._known_stamp: tuple[tuple[int, int], ...] = ()
        self._runs: dict[str, _CachedRun] = {}
        self._cordons: Cordons = {}
        self._jobs: tuple[Job, ...] | None = None
        self._guard = ""
        self._placed = False
        self._seen: Mapping[str, JobStatus] = {}
        self._past: Mapping[str, tuple[JobLook, ...]] = {}
        self._trends: Mapping[str, Trends] = {}
        self._trends_stamp: tuple[tuple[int, int], ...] = ()
        self._unasked = ""
        self._problems: list[str] = []

    def read(self) -> Facts:
        self._problems = [f"jobs: {self._unasked}"] if self._unasked else []
        inventory = self._read_inventory()
        jobs = self._read_jobs()
        self._read_known()
        return Facts(
            context=self._settings.context,
            scheduler=self._settings.scheduler,
            readonly=self._settings.readonly,
            user=person(),
            read_at=self.now(),
            inventory=inventory,
            nodes=self._node_facts(inventory, jobs),
            jobs=jobs,
            verdicts=self._read_verdicts(),
            runs=tuple(self._read_run(path) for path in reversed(self._run_dirs())),
            swept_at=max((k.at for k in self._known.values()), default=None),
            bisects=self._read_bisects(),
            scheduler_asked=self._placed,
            guard=self._guard,
            notes=self._try("notes", partial(notes.read_notes, self._settings.state_dir), {}),
            alerts=self._try("alerts", partial(alert_store.load_all, self._settings.state_dir), ()),
            pool=self._try("standbys", self._read_pool, Pool()),
            looks=self._read_looks(jobs),
            seen=self._seen,
            past=self._past,
            trends=self._read_trends(jobs),
            watch=self._read_watch(),
            machine=socket.gethostname(),
            troubles=tuple(self._problems),
        )

    def node_health(self, name: str) -> NodeHealth | None:
        return self._surely(name, partial(self._answers, name))

    def node_past(self, name: str) -> Sequence[PastState]:
        state_dir = self._settings.state_dir
        return self._surely(name, partial(node_states.node_history, state_dir, name, PAST_SHOWN))

    def _surely(self, name: str, read: Callable[[], Result]) -> Result:
        """Read one node, or say why not: never "nothing" for what cannot be read."""
        try:
            return read()
        except _UNREADABLE as error:
            raise UnavailableError(f"{name}: its answers cannot be read: {error}") from error

    def _answers(self, name: str) -> NodeHealth | None:
        found = node_states.node_health(self._settings.state_dir, name)
        if found is None and name in self._known:
            # The index is gone but the sweeps are not.
            swept = sweep_store.latest(self._settings.state_dir)
            found = next((n for n in swept.nodes if n.node == name), None) if swept else None
        return found

    def set_scheduler_state(self, cordons: Cordons, jobs: Sequence[Job], guard: str) -> None:
        self._cordons, self._jobs, self._guard = dict(cordons), tuple(jobs), guard
        self._placed = True

    def add_job_looks(self, seen: Sequence[JobSeen], problem: str = "") -> None:
        self._unasked = problem
        if problem:
            return
        self._seen = {one.look.job: one.status for one in seen}
        self._past = {
            one.look.job: (*self._past.get(one.look.job, ()), one.look)[-LOOKS_KEPT:]
            for one in seen
        }

    def measure(self, colour: str) -> Mapping[str, float]:
        measure = MEASURES[colour]
        seen = {name: self.node_health(name) for name in self._known}
        values = {name: value_of(n.report, measure) if n else None for name, n in seen.items()}
        return {name: value for name, value in values.items() if value is not None}

    def forget(self) -> None:
        self._inventory = self._fixed_inventory
        self._known_stamp = ()
        self._runs.clear()

    def stacks(self, job: str) -> StackAnalysis:
        # SSH libraries come with it; nobody waits for them who does not look at stacks.
        from brctl.engine.job.stack_store import newest_folder
        from brctl.engine.job.stacks import analyse_folder

        found = next(
            (known for known in self._jobs or self._read_jobs() if known.name == job), None
        )
        if found is None:
            raise UsageError(f"no job {job!r} is declared")
        return analyse_folder(newest_folder(self._settings.state_dir, job), found)

    def add_note(self, incident: str, text: str) -> None:
        notes.add_note(self._settings.state_dir, incident, (self.now(), person(), text))

    def export(self, name: str, text: str) -> Path:
        return notes.export(self._settings.state_dir, name, text)

    def _try(self, what: str, read: Callable[[], Result], instead: Result) -> Result:
        try:
            return read()
        except _UNREADABLE as error:
            self._problems.append(f"{what}: {error}")
            return instead

    def _read_pool(self) -> Pool:
        return load_pool(self._settings.state_dir, self._settings.context)

    def _read_inventory(self) -> Inventory:
        if self._inventory is None:
            empty = Inventory({})
            found = self._try("inventory", lambda: load_inventory(self._settings), empty)
            if found is empty:
                return empty
            self._inventory = found
        return self._inventory

    def _read_jobs(self) -> tuple[Job, ...]:
        if self._jobs is None:
            nothing: Job | None = None
            found = [
                self._try(f"job {path}", partial(load_job, path), nothing)
                for path in self._settings.jobs
            ]
            return tuple(job for job in found if job is not None)
        return self._jobs

    def _read_looks(self, jobs: Sequence[Job]) -> Mapping[str, JobLook]:
        """The newest look at each job: cron's or that of `dx` on disk, or this terminal's own."""
        settings = self._settings
        kept = [last_look(settings.state_dir, settings.context, job.name) for job in jobs]
        own = [look for looks in self._past.values() for look in looks[-1:]]
        by_age = sorted((look for look in (*kept, *own) if look), key=lambda look: look.at)
        return {look.job: look for look in by_age}

    def _read_watch(self) -> WatchSnapshot:
        """The watcher's folder; what cannot be read is also in the bar of troubles."""
        folder = WatchFolder(self._settings.state_dir, self._settings.context)
        seen = folder.snapshot(RECORDS_SHOWN)
        if seen.problem:
            self._problems.append(f"watcher: {seen.problem}")
        return seen

    def _read_trends(self, jobs: Sequence[Job]) -> Mapping[str, Trends]:
        """Health over time, read again when a minute has passed or something was written."""
        state_dir, now = self._settings.state_dir, self.now()
        stamp = (*_index_stamp(state_dir), (int(now.timestamp()) // 60, len(jobs)))
        if stamp != self._trends_stamp:
            store = TrendStore(state_dir, self._settings.context)
            self._trends = {job.name: store.read((job.name, *job.nodes), now) for job in jobs}
            self._trends_stamp = stamp
        return self._trends

    def _read_known(self) -> None:
        """Read the index again when it changed; without one, the sweeps themselves."""
        state_dir = self._settings.state_dir
        sweeps = self._files(state_dir / "sweeps", sweep_file.PATTERN)
        stamp = (*_index_stamp(state_dir), (len(sweeps), 0))
        if stamp == self._known_stamp:
            return
        nothing: tuple[Known, ...] = ()
        found = self._try("index of sweeps", partial(node_states.known, state_dir), nothing)
        if not found and sweeps:
            found = self._try("sweeps", partial(_from_sweeps, state_dir), nothing)
            if not found:
                self._problems.append(f"sweeps: none of {len(sweeps)} files can be read")
                return
        self._known = {known.node: known for known in found}
        self._known_stamp = stamp

    def _node_facts(self, inventory: Inventory, jobs: Sequence[Job]) -> tuple[NodeFact, ...]:
        job_of = {node: job.name for job in jobs for node in job.nodes}
        return tuple(
            self._fact(node, job_of.get(node.name, "")) for node in inventory.nodes.values()
        )

    def _fact(self, node: Node, job: str) -> NodeFact:
        known, cordon = self._known.get(node.name), self._cordons.get(node.name)
        if known is None:
            return NodeFact(node, cordon=cordon, job=job)
        return NodeFact(node, known.health, known.check, known.detail, known.at, cordon, job)

    def _read_verdicts(self) -> tuple[StoredVerdict, ...]:
        state_dir = self._settings.state_dir
        nothing: StoredVerdict | None = None
        found = [
            self._try(
                f"verdict {path.stem}", partial(verdict_store.load, state_dir, path.stem), nothing
            )
            for path in self._files(state_dir / "verdicts", "V-*.json")
        ]
        known = [self._with_move(stored) for stored in found if stored is not None]
        return tuple(sorted(known, key=lambda s: s.verdict.decided_at, reverse=True))

    def _with_move(self, stored: StoredVerdict) -> StoredVerdict:
        """What was tried since the verdict was stored changes what comes next."""
        if stored.state is not VerdictState.OPEN:
            return stored
        from brctl.engine.runs.propose import with_next_move

        arguments = (self._settings.state_dir, self._settings.context, stored.verdict, self.now())
        name = f"next move of {stored.verdict.id}"
        verdict = self._try(name, partial(with_next_move, *arguments), stored.verdict)
        return replace(stored, verdict=verdict)

    def _files(self, folder: Path, pattern: str) -> list[Path]:
        nothing: list[Path] = []
        return self._try(folder.name, lambda: sorted(folder.glob(pattern)), nothing)

    def _read_bisects(self) -> tuple[BisectFact, ...]:
        nothing: BisectFact | None = None
        paths = self._files(self._settings.state_dir / TRAILS, "B-*.ndjson")
        found = [
            self._try(f"bisection {path.stem}", partial(_bisect, path), nothing)
            for path in reversed(paths[-RUNS_READ:])
        ]
        return tuple(one for one in found if one is not None)

    def _run_dirs(self) -> list[Path]:
        nothing: list[Path] = []
        return self._try("runs", partial(run_dirs, self._settings.state_dir), nothing)[-RUNS_READ:]

    def _read_run(self, path: Path) -> Run | UnreadableRun:
        try:
            return self._journal(path)
        except _UNREADABLE as error:
            self._problems.append(str(error))
            return UnreadableRun(path.name, str(error))

    def _journal(self, path: Path) -> Run:
        alive = is_running(path)
        stamp = _stamp(path / EVENTS)
        cached = self._runs.get(path.name)
        is_old = cached is None or cached.stamp != stamp or cached.alive != alive
        # Whether a run without a line still starts or never will is a matter of time.
        if cached is None or is_old or not cached.run.events:
            self._runs[path.name] = cached = _CachedRun(stamp, alive, read_run(path))
        return cached.run


def _index_stamp(state_dir: Path) -> tuple[tuple[int, int], ...]:
    """Another one whenever something was written to the index of sweeps and trends."""
    index = database_path(state_dir)
    return (_stamp(index), _stamp(index.with_name(f"{index.name}-wal")))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)


def _from_sweeps(state_dir: Path) -> tuple[Known, ...]:
    swept = sweep_store.latest(state_dir)
    if swept is None:
        return ()
    at, name = swept.started_at, swept.id
    return tuple(Known(n.node, n.health, *reason_of(n), at, name) for n in swept.nodes)


def _bisect(path: Path) -> BisectFact:
    """One search; a line that is still being written is left for the next look."""
    whole = path.read_bytes().split(b"\n")[:-1]
    lines = [msgspec.json.decode(line) for line in whole if line]
    return BisectFact(path.stem, tuple(line for line in lines if isinstance(line, dict)))
