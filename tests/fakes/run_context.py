"""A small cluster in one file, as a run sees it: what the engine does outlives the engine."""

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from brctl.actions.context import RunContext
from brctl.engine.controller.selection import moment_for
from brctl.engine.runs.context import UnbornRun
from brctl.inventory.select import select
from brctl.journal.code_ledger import CodeLedger, ledger_dir, with_code
from brctl.journal.wanted_order import WantedOrderFile
from brctl.library.config import SshSettings
from brctl.library.guards import SiteGuards
from brctl.library.notify_settings import NotifySettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import Action, FaultClass, Origin
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.rank_dumps import RankDumps
from brctl.model.localisation import (
    Bisection,
    Conclusion,
    Exclusion,
    FaultKind,
    Finding,
    GroupResult,
)
from brctl.model.runs.calendar import Calendar
from brctl.model.sweeps.burnin import Burnin
from brctl.model.sweeps.corruption import CorruptionOrder, CorruptionSearch, Method, MethodReport
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth
from brctl.model.verdict import Suspect, Verdict
from brctl.notify.notifier import Notifier
from brctl.playbook.placement.price import ASSUMED, PlacePrice
from tests.fakes import node_programs
from tests.fakes.file_backend import FileBackend
from tests.fakes.world_file import WorldFile

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
ACTIVE, STANDBYS = ("n1", "n2", "n3", "n4"), ("s1", "s2")


def example_inventory() -> Inventory:
    """Four active nodes and two standbys."""
    nodes = [Node(name, "127.0.0.1", gpus=8) for name in ACTIVE]
    nodes += [Node(name, "127.0.0.1", gpus=8, role=NodeRole.STANDBY) for name in STANDBYS]
    return Inventory({node.name: node for node in nodes})


def example_job() -> Job:
    """One rank on each active node."""
    return Job(
        name="demo",
        nodes=ACTIVE,
        ranks_per_node=1,
        axes=(("dp", 4),),
        launch=("train",),
        checkpoint_dir=PurePosixPath("/ckpt"),
        log_dir=PurePosixPath("/logs"),
        progress_dir=PurePosixPath("/progress"),
    )


def example_code() -> JobCode:
    """Releases in /code; the ranks start from r1."""
    return JobCode(PurePosixPath("/code"), "r1", "r1")


def example_verdict(at: datetime = NOON) -> Verdict:
    """n3 lost a GPU, surely."""
    return Verdict(
        id="V-1",
        fault=FaultClass.GPU_LOST,
        title="a GPU fell off the bus",
        suspects=(Suspect("n3"),),
        origin=Origin.INFRA,
        probability=0.97,
        action=Action.SWAP,
        playbook="swap-and-resume",
        say="a machine is at fault, evict it",
        evidence=(),
        alternatives=(),
        ruled_out=(),
        not_checked=(),
        decided_at=at,
        job="demo",
        job_step=40,
    )


@dataclass(frozen=True)
class FakeCluster:
    """See `brctl.engine.controller.selection.Cluster`."""

    inventory: Inventory
    jobs: Mapping[str, Job]
    backend: FileBackend
    state_dir: Path


@dataclass
class FakeClock:
    """Time passes when somebody pauses, and training with it; see `Clock`."""

    world: WorldFile

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.world.read()["seconds"])

    async def pause(self, seconds: float) -> None:
        with self.world.change() as data:
            data["seconds"] += seconds
            if len(data["ranks"]) == len(ACTIVE):
                data["step"] += 1


@dataclass
class FakeNodes:
    """Every node is this machine; a dead one does not answer; see `NodeAccess`."""

    world: WorldFile
    cluster: FakeCluster

    async def command(self, node: str, command: Command) -> CommandResult:
        if node in self.world.read()["dead"]:
            return CommandResult(node, Outcome.UNREACHABLE, None, b"", b"", 0.0, "no answer")
        process = await asyncio.create_subprocess_exec(*command.argv, stdin=PIPE, stdout=PIPE)
        stdout, _ = await process.communicate(command.stdin)
        return CommandResult(node, Outcome.ANSWERED, process.returncode, stdout, b"", 0.0)

    async def run_program(
        self, node: str, argv: Sequence[str], deadline_s: float, *, root: bool = False
    ) -> CommandResult:
        return node_programs.run_program(self.world, node, argv, root=root)

    async def select(self, text: str) -> tuple[str, ...]:
        """Everybody who is not in the job is known to be good."""
        inventory = replace(self.cluster.inventory, groups={"golden": STANDBYS})
        return select(inventory, text, live=await moment_for(self.cluster, text))

    def wait_less_for_silent(self, nodes: Sequence[str]) -> None:
        """Nobody waits here."""


@dataclass
class FakeJobs:
    """The job of the WorldFile; see `Jobs`."""

    world: WorldFile
    state_dir: Path
    code: JobCode | None = None

    async def get(self, name: str) -> Job:
        has_code = self.world.read().get("has_code", False)
        code = example_code() if has_code else self.code
        job = await FileBackend(self.world).place(replace(example_job(), code=code))
        return with_code(job, self.code_ledger(job.name))

    async def all(self) -> Sequence[Job]:
        return [await self.get("demo")]

    def code_ledger(self, job: str) -> CodeLedger:
        return CodeLedger(ledger_dir(self.state_dir, "fake", job))

    def wanted_order(self, job: str) -> WantedOrderFile:
        return WantedOrderFile(self.state_dir, "fake", job)

    async def progress(self, job: Job) -> JobStatus:
        data = self.world.read()
        ranks = tuple(
            RankView(int(r), job.nodes[int(r)], alive=True, step=data["step"])
            for r in data["ranks"]
        )
        step = data["step"] if ranks else None
        return JobStatus(job, ranks, step, None, data["stalled"], ())

    async def dump_ranks(
        self, job: Job, folder: Path, nodes: Sequence[str], within_s: float | None
    ) -> RankDumps:
        dead = [job.nodes.index(node) for node in self.world.read()["dead"] if node in job.nodes]
        return node_programs.dump_ranks(folder, range(job.world_size), dead)


Checkpoints = Callable[[], list[tuple[int, bool]]]


@dataclass
class FakeSweeps:
    """Sick and dead nodes as the WorldFile has them; see `Sweeps`."""

    world: WorldFile
    checkpoints: Checkpoints

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        return [self._health(node) for node in nodes]

    async def recording_of(self, verdict: str) -> bytes | None:
        return f"the look of {verdict}".encode() if verdict else None

    async def record(
        self, nodes: Sequence[str], job: Job | None
    ) -> tuple[Sequence[NodeHealth], bytes]:
        said = ", ".join([*nodes, job.name if job else "no job"])
        return [self._health(node) for node in nodes], f"a recording of {said}".encode()

    def _health(self, node: str) -> NodeHealth:
        data = self.world.read()
        faulty = node in data["sick"] or node in data["dead"]
        weight = Weight.CONVICTS if faulty else Weight.CLEARS
        evidence = Evidence(
            "gpu.lost",
            Subject(node),
            weight,
            FaultClass.GPU_LOST,
            Role.ROOT,
            "test",
            "a GPU is lost",
        )
        report = NodeReport(node, Outcome.ANSWERED)
        health = Health.CRITICAL if faulty else Health.OK
        return NodeHealth(node, health, report, (evidence,), ())

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        if node in self.world.read()["dead"]:
            return NodeReport(node, Outcome.UNREACHABLE, detail="no answer")
        rows = tuple(self._rows(node, check, job))
        return NodeReport(node, Outcome.ANSWERED, (CheckResult(check, ProbeStatus.MEASURED, rows),))

    def _rows(self, node: str, check: str, job: Job | None) -> Iterator[Measurement]:
        if check == "job.code" and job is not None and job.code is not None:
            edited = node in self.world.read().get("edited", [])
            digest = f"edited-{node}" if edited else f"digest-of-{job.code.version}"
            yield Measurement("job.code.digest", f"code:{job.code.version}", digest)
        elif check.startswith("gpu."):
            yield from node_programs.gpu_rows(self.world.read(), node, check)
        else:
            for step, whole in self.checkpoints():
                subject = f"ckpt:step-{step:08d}"
                yield Measurement("job.checkpoint.step", subject, step)
                yield Measurement("job.checkpoint.complete", subject, whole)

    def computed_wrongly(self) -> Mapping[str, datetime]:
        found = self.world.read().get("computed_wrongly", {})
        return {node: NOON + timedelta(seconds=after_s) for node, after_s in found.items()}

    async def burn_in(
        self, nodes: Sequence[str], level: int, duration_s: float, stop_on: Sequence[str]
    ) -> Burnin:
        return node_programs.burn_in(self.world, nodes, level, duration_s)

    def ailing(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset()


@dataclass
class FakeSearch:
    """Sick and dead nodes fail every collective; see `Search`."""

    world: WorldFile
    clock: FakeClock

    async def bisect(
        self, nodes: Sequence[str], size_bytes: int, reps: int, budget_s: float
    ) -> Bisection:
        data = self.world.read()
        bad = tuple(node for node in nodes if node in data["sick"] or node in data["dead"])
        kind = FaultKind.NODE if bad else FaultKind.NONE
        finding = Finding(kind, bad, 0.99)
        conclusion = Conclusion(
            (finding,), Exclusion(0.2, 0.99, 8), 2, 2 * len(nodes), complete=True
        )
        return Bisection(
            "B-1", self.clock.now(), 1.0, tuple(nodes), "all_reduce", size_bytes, reps, budget_s, 0,
            "fake", (), conclusion, "settled", unexplained=False,
        )  # fmt: skip

    def replay_groups(self, job: Job) -> Sequence[Sequence[str]]:
        return [job.nodes[:2], job.nodes[2:]]

    async def replay(self, job: Job, deadline_s: float) -> Bisection:
        return await self.bisect(job.nodes, 0, 1, deadline_s)

    async def locate_corruption(
        self, job: Job, order: CorruptionOrder, tell: Callable[[str], None]
    ) -> CorruptionSearch:
        """Sick nodes compute wrongly, dead ones say nothing."""
        data = self.world.read()
        asked = (*job.nodes, *order.references)
        report = MethodReport(
            Method.PRODUCTS, 2.0, order.repetitions,
            tuple(node for node in asked if node in data["sick"]),
            unmeasured={node: "no answer" for node in asked if node in data["dead"]},
        )  # fmt: skip
        return CorruptionSearch(order, (report,))

    async def test_groups(
        self, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
    ) -> Sequence[GroupResult]:
        return node_programs.test_groups(self.world, groups, reps)


@dataclass
class FakeStandbys:
    """The pool of the WorldFile behind the inventory's standbys; see `Standbys`."""

    world: WorldFile
    inventory: Inventory

    def best_first(self, job: str = "") -> tuple[str, ...]:
        return (*self.inventory.names(NodeRole.STANDBY), *self.world.read().get("pool", []))

    def start_s(self, job: str) -> Mapping[str, float]:
        return {
            node: self.world.read().get("cold_s", {}).get(node, 0.0) for node in self.best_first()
        }

    def place_price(self) -> PlacePrice:
        return ASSUMED

    def uptime_s(self, machines: int) -> float:
        return 12 * 3600.0

    def warmed_at(self) -> Mapping[str, datetime]:
        return {}

    async def enlist(self, node: str) -> str:
        if node in self.world.read()["dead"]:
            return "no answer"
        with self.world.change() as data:
            data.setdefault("pool", []).append(node)
            data["effects"].append(f"enlist {node}")
        return ""

    async def dismiss(self, nodes: Sequence[str]) -> None:
        with self.world.change() as data:
            data["pool"] = [node for node in data.get("pool", []) if node not in nodes]


@dataclass
class FakeVerdicts:
    """One verdict, whichever is asked for; see `Verdicts`."""

    world: WorldFile
    known: Verdict = field(default_factory=example_verdict)

    def get(self, verdict_id: str) -> Verdict:
        return self.known

    async def still_true(self, verdict: Verdict) -> bool | None:
        answer: bool | None = self.world.read()["still_true"]
        return answer


@dataclass
class FakePeople:
    """See `People`."""

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def groups_of(self, person: str) -> Collection[str]:
        return self.groups.get(person, ())


@dataclass
class FakeCalendars:
    """See `Calendars`."""

    known: dict[str, Calendar] = field(default_factory=dict)

    def read(self, name: str) -> Calendar:
        return self.known.get(name, Calendar(name, problem="no such calendar", absent=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeContext(RunContext):
    """The cluster of a WorldFile as a run sees it."""

    world: WorldFile
    verdicts: FakeVerdicts
    calendars: FakeCalendars
    sweeps: FakeSweeps


def fake_context(
    folder: Path,
    *,
    world: WorldFile | None = None,
    guards: SiteGuards | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    calendars: dict[str, Calendar] | None = None,
    code: JobCode | None = None,
    notify: NotifySettings | None = None,
    checkpoints: Checkpoints = lambda: [(40, False), (38, True)],
) -> FakeContext:
    """A fresh cluster under a folder, or the one that is there already."""
    world = world or WorldFile(folder / "world.json")
    state_dir, inventory, clock = folder / "state", example_inventory(), FakeClock(world)
    backend = FileBackend(world)
    cluster = FakeCluster(inventory, {"demo": example_job()}, backend, state_dir)
    return FakeContext(
        name="fake",
        state_dir=state_dir,
        world=world,
        inventory=inventory,
        guards=guards or SiteGuards(),
        ssh=SshSettings(transport="local"),
        backend=backend,
        notifier=Notifier(notify or NotifySettings(), state_dir, clock.now),
        clock=clock,
        nodes=FakeNodes(world, cluster),
        jobs=FakeJobs(world, state_dir, code),
        sweeps=FakeSweeps(world, checkpoints),
        search=FakeSearch(world, clock),
        standbys=FakeStandbys(world, inventory),
        verdicts=FakeVerdicts(world),
        people=FakePeople(groups or {}),
        calendars=FakeCalendars(calendars or {}),
        run=UnbornRun(state_dir),
    )
