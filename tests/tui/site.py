"""A small site on disk: six nodes, a sweep, a verdict, and the engine over a cluster in a file."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.runs.plan import Prepared, prepare
from brctl.engine.runs.remediate import answer, resume, roll_back, start_run
from brctl.engine.runs.run_files import RunRequest
from brctl.engine.sweeps import sweep_store
from brctl.journal.store import find_run
from brctl.library.config import Settings, load_settings
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.answer import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.model.verdict import RuledOut, Suspect, Verdict
from brctl.playbook.approvals import confirmation_text
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.session.engine_client import Placement, Proposal
from brctl.tui.session.state_reader import DiskStateReader
from brctl.tui.widgets.palette import DARK
from tests.fakes.run_context import NOON, FakeContext, example_verdict, fake_context

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
        cost_if_wrong="one standby and about four minutes",
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
    for name, text in (("config.yaml", CONFIG), ("inventory.yaml", INVENTORY), ("job.yaml", JOB)):
        (folder / name).write_text(text)
    settings = load_settings({"HOME": str(folder)}, config=folder / "config.yaml")
    if swept:
        sweep_store.save(settings.state_dir, site_sweep())
    if verdict is not None:
        verdict_store.save(settings.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    return settings


@dataclass
class SiteEngine:
    """The engine itself over the cluster in a file; a run is a process, as in life."""

    folder: Path
    settings: Settings
    did: list[str] = field(default_factory=list)
    _prepared: dict[str, Prepared] = field(default_factory=dict)

    @property
    def context(self) -> FakeContext:
        context = fake_context(self.folder)
        if (self.settings.state_dir / "verdicts" / "V-1.json").exists():
            context.verdicts.known = verdict_store.load(self.settings.state_dir, "V-1").verdict
        return context

    async def placement(self) -> Placement:
        cordons = await self.context.backend.cordons()
        told = {name: (c.owner, c.reason) for name, c in cordons.items()}
        jobs = tuple(await self.context.jobs.all())
        return Placement(told, jobs, f"{len(told)} nodes taken in 6h00 + 0 now = {len(told)} <= 5")

    async def sweep(self, names: Sequence[str], on_node: Callable[[NodeHealth], None]) -> str:
        self.did.append(f"sweep {len(names)}")
        nodes = [node for node in site_sweep().nodes if node.node in names]
        for node in nodes:
            on_node(node)
        newer = replace(site_sweep(), id="S-20260705T120100000", nodes=tuple(nodes))
        sweep_store.save(self.settings.state_dir, newer)
        return newer.id

    async def diagnose(self, names: Sequence[str], job: str) -> tuple[str, ...]:
        self.did.append(f"diagnose {job or ','.join(names)}")
        verdict = replace(site_verdict(), id="V-2")
        verdict_store.save_new(self.settings.state_dir, verdict)
        return (verdict.id,)

    async def propose(self, verdict_id: str) -> Proposal:
        self.did.append(f"propose {verdict_id}")
        playbook = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
        verdict = verdict_store.load(self.settings.state_dir, verdict_id).verdict
        prepared = await prepare(self.context, playbook, verdict)
        self._prepared[prepared.plan.digest] = prepared
        words = confirmation_text(playbook, len(prepared.plan.nodes), "demo")
        return Proposal(prepared.plan, words, f"brctl fix {verdict_id} --confirm '{words}'")

    async def start(self, proposal: Proposal) -> str:
        self.did.append("start")
        return await self.start_unapproved(proposal, proposal.words)

    async def start_unapproved(self, proposal: Proposal, typed: str | None = None) -> str:
        """Start a run that nobody has approved yet."""
        prepared = self._prepared[proposal.plan.digest]
        request = RunRequest("oncall", "site", typed=typed)
        return (await start_run(self.context, prepared, request, RUN_PROGRAM)).name

    async def approve(self, run: str, typed: str) -> None:
        self.did.append(f"approve {run} {typed}")
        run_dir = find_run(self.settings.state_dir, run)
        answer(self.context, run_dir, "oncall", yes=True, typed=typed)
        await resume(run_dir, RunRequest("oncall", "site"), RUN_PROGRAM)

    async def deny(self, run: str) -> None:
        self.did.append(f"deny {run}")
        run_dir = find_run(self.settings.state_dir, run)
        answer(self.context, run_dir, "oncall", yes=False)
        await resume(run_dir, RunRequest("oncall", "site"), RUN_PROGRAM)

    async def rollback(self, run: str) -> None:
        self.did.append(f"rollback {run}")
        run_dir = find_run(self.settings.state_dir, run)
        await roll_back(run_dir, RunRequest("oncall", "site"), RUN_PROGRAM)

    async def in_terminal(self, words: Sequence[str]) -> int:
        self.did.append("terminal " + " ".join(words))
        return 0

    async def close(self) -> None:
        await asyncio.sleep(0.05)


def site_app(
    folder: Path,
    settings: Settings,
    start: Address | None = None,
    *,
    theme: str = DARK,
    keymap: Mapping[str, str] | None = None,
    ascii_only: bool = False,
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
    )
