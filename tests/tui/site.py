"""A small site on disk: six nodes, a sweep, a verdict, and the engine over a cluster in a file."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.sweeps import sweep_store
from brctl.inventory.load import load_inventory
from brctl.library.config import Settings, load_settings
from brctl.model.command import CommandResult, Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.model.verdict import RuledOut, Suspect, Verdict
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.session.engine_client import JobSeen, Proposal
from brctl.tui.session.local_engine import LocalEngine
from brctl.tui.session.saved_views import SavedViews
from brctl.tui.session.state_reader import DiskStateReader
from brctl.tui.widgets.palette import DARK
from tests.fakes.run_context import NOON, FakeContext, example_verdict, fake_context
from tests.fakes.transport import FakeTransport

# The shell goes at once, so that no test's event loop ends with a child it has not waited for.
RUN_PROGRAM = ("sh", "-c", '"$@" &', "sh", sys.executable, "-m", "tests.fakes.run_fake_world")
GPU = "gpu:GPU-8f6d1c1e-0000-0000-0000-000000000005"
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: site
contexts:
  site:
    inventory: [{file: inventory.yaml}]
    jobs: [job.yaml]
    scheduler: static
ssh: {user: root}
state_dir: state
"""
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  n[1-4]: {address: "127.0.0.[1-4]", gpus: 8, rack: r1}
  s[1-2]: {address: "127.0.0.[5-6]", gpus: 8, role: standby, rack: r2}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-4]
ranks_per_node: 1
launch: [train]
checkpoint: {directory: /ckpt}
logs: /logs
progress: /progress
"""
GUARDS = """\
apiVersion: brctl.dev/v1
kind: Guards
blast_radius: {max_nodes: 5}
"""


def xid(at: datetime) -> Evidence:
    """The line everything hangs on."""
    return Evidence(
        "gpu.xid.79", Subject("n3", GPU), Weight.CONVICTS, FaultClass.GPU_LOST, Role.ROOT,
        "gpu.xid", "Xid 79: GPU 5 has fallen off the bus",
        "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.", at,
    )  # fmt: skip


def site_verdict(probability: float = 0.8) -> Verdict:
    """n3 lost a GPU; medium, so that a run waits for a person."""
    follow = Evidence(
        "job.rank.alive", Subject("n1", "rank:0"), Weight.CONTEXT, None, Role.VICTIM, "job.ranks",
        "rank 0 waits for rank 2", at=NOON - timedelta(seconds=18),
    )  # fmt: skip
    return replace(
        example_verdict(),
        suspects=(Suspect("n3", (GPU,), (2,)),),
        probability=probability,
        evidence=(xid(NOON - timedelta(seconds=22)), follow),
        ruled_out=(RuledOut(FaultClass.NETWORK_IB, (1,), "seven other GPUs use the same NICs"),),
        not_checked=(Gap(Subject("n4"), "gpu.nvlink", "the job was running"),),
        cost_if_wrong=CATALOGUE[FaultClass.GPU_LOST].cost_if_wrong,
    )


def node_health(name: str, health: Health, evidence: tuple[Evidence, ...] = ()) -> NodeHealth:
    """A node as a sweep saw it."""
    values = [("gpu.device.index", i) for i in range(1)] + [("gpu.clocks.temperature_c", 41)]
    measured = tuple(Measurement(n, GPU, v) for n, v in values)
    silent = health is Health.UNKNOWN
    report = NodeReport(
        name,
        Outcome.CONNECT_TIMED_OUT if silent else Outcome.ANSWERED,
        () if silent else (CheckResult("gpu.devices", ProbeStatus.MEASURED, measured),),
        detail="no answer in 10 s" if silent else "",
        seconds=0.4,
        received_at=NOON,
    )
    gaps = (Gap(Subject(name), "node", "no answer in 10 s"),) if silent else ()
    return NodeHealth(name, health, report, evidence, gaps)


def site_sweep() -> Sweep:
    """One bad, one silent, one doubtful, three well."""
    warm = Evidence(
        "gpu.clocks.temperature_c", Subject("n2", GPU), Weight.HINTS, FaultClass.THERMAL_POWER,
        Role.ROOT, "gpu.clocks", "GPU is at 88 C", "88", NOON,
    )  # fmt: skip
    nodes = (
        node_health("n1", Health.OK), node_health("n2", Health.WARNING, (warm,)),
        node_health("n3", Health.CRITICAL, (xid(NOON),)), node_health("n4", Health.UNKNOWN),
        node_health("s1", Health.OK), node_health("s2", Health.OK),
    )  # fmt: skip
    return Sweep("S-20260705T120000000", 1, ("gpu.devices",), NOON, 0.9, nodes)


def make_site(folder: Path, *, verdict: Verdict | None = None, swept: bool = True) -> Settings:
    """Write the site below a folder; `folder/state` is its state."""
    files = {"config": CONFIG, "inventory": INVENTORY, "job": JOB, "guards": GUARDS}
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    settings = load_settings({"HOME": str(folder)}, config=folder / "config.yaml")
    if swept:
        sweep_store.save(settings.state_dir, site_sweep())
    if verdict is not None:
        verdict_store.save(settings.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    return settings


class SiteCluster:
    """A cluster in a file, whose nodes give no answer over the network; see `Cluster`."""

    program = RUN_PROGRAM

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Controller]:
        context = fake_context(self._folder)
        jobs = {job.name: job for job in await context.jobs.all()}
        mute = FakeTransport(
            lambda node, _: CommandResult(node.name, Outcome.CONNECT_TIMED_OUT, None, b"", b"", 0.0)
        )
        inventory = load_inventory(self._settings)
        yield Controller(self._settings, inventory, jobs, mute, context.backend, lambda: NOON)

    def run_context(self, controller: Controller) -> FakeContext:
        context = fake_context(self._folder)
        if (controller.state_dir / "verdicts" / "V-1.json").exists():
            context.verdicts.known = verdict_store.load(controller.state_dir, "V-1").verdict
        return context


class SiteEngine(LocalEngine):
    """The terminal's own engine over that cluster, with a list of what it was asked."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.did: list[str] = []
        self.told: list[str] = []
        self.settings = settings
        self.context = fake_context(folder)
        self.refusal = ""
        self.seen: tuple[JobSeen, ...] = ()
        super().__init__(settings, self.told.append, SiteCluster(folder, settings))

    async def look_at_jobs(self) -> tuple[JobSeen, ...]:
        self.did.append("look")
        return self.seen or await super().look_at_jobs()

    async def sweep(self, names: Sequence[str], on_node: Callable[[NodeHealth], None]) -> str:
        self.did.append(f"sweep {len(names)}")
        return await super().sweep(names, on_node)

    async def diagnose(self, names: Sequence[str], job: str) -> tuple[str, ...]:
        self.did.append(f"diagnose {job or ','.join(names)}")
        return await super().diagnose(names, job)

    async def propose(self, verdict_id: str) -> Proposal:
        self.did.append(f"propose {verdict_id}")
        return await super().propose(verdict_id)

    async def start(self, proposal: Proposal) -> str:
        self.did.append("start")
        return await super().start(proposal)

    async def start_unapproved(self, proposal: Proposal, typed: str | None = None) -> str:
        """Start a run that nobody has approved yet."""
        return await super().start(replace(proposal, words=typed))  # type: ignore[arg-type]  # nothing typed

    def why_not_approve(self, run: str) -> str:
        return self.refusal or super().why_not_approve(run)

    async def approve(self, run: str, typed: str) -> None:
        self.did.append(f"approve {run} {typed}")
        await super().approve(run, typed)

    async def deny(self, run: str) -> None:
        self.did.append(f"deny {run}")
        await super().deny(run)

    async def rollback(self, run: str) -> None:
        self.did.append(f"rollback {run}")
        await super().rollback(run)

    async def in_terminal(self, arguments: Sequence[str]) -> int:
        self.did.append("terminal " + " ".join(arguments))
        return 0


def site_app(
    folder: Path,
    settings: Settings,
    start: Address | None = None,
    *,
    theme: str = DARK,
    keymap: Mapping[str, str] | None = None,
    ascii_only: bool = False,
    look_every_s: float = 0.0,
    saved: SavedViews | None = None,
) -> BrctlApp:
    """The app on that site, twelve seconds after the sweep."""
    later = NOON + timedelta(seconds=12)
    reader = DiskStateReader(settings, lambda: later)
    engine = SiteEngine(folder, settings)
    return BrctlApp(
        reader,
        engine,
        start,
        now=lambda: later,
        theme=theme,
        keymap=keymap,
        ascii_only=ascii_only,
        tick_s=0.2,
        look_every_s=look_every_s,
        saved=saved,
    )
