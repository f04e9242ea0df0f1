"""Pictures of a fleet of 1,000 for the README: the real app over a made-up state on disk.

No machine here has a thousand nodes, so the sweep, the verdict and what the ranks say are written
down; what is drawn of them is drawn by nobody but the app.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.library.config import Settings, load_settings
from brctl.library.jobs import load_job
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.verdict import Suspect
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.session.engine_client import JobSeen, SchedulerState
from brctl.tui.session.state_reader import DiskStateReader
from brctl.tui.widgets.palette import DARK
from tests.bench.tui_app import NoEngine
from tests.bench.tui_site import NOON, remember
from tests.tui.site import site_verdict

NODES = 1000
SUSPECT = "gpu0158"
"""A node that the made-up sweep found to have lost a GPU."""
STALL_STEP = 18240
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod-a
contexts:
  prod-a:
    inventory: [{file: inventory.yaml}]
    jobs: [llm-70b.yaml, moe-8x7b.yaml]
    scheduler: static
ssh: {user: ops}
state_dir: state
"""
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  "gpu[0001-0960]": {gpus: 8, rack: {every: 32, format: "r%02d"}}
  "gpu[0961-1000]": {gpus: 8, role: standby, rack: spare}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: %s
nodes: "%s"
ranks_per_node: 8
launch: [train]
checkpoint: {directory: /ckpt}
logs: /logs
progress: /progress
"""
JOBS = {"llm-70b": "gpu[0001-0512]", "moe-8x7b": "gpu[0513-0896]"}
CORDONS = {
    "gpu0701": ("oncall", "fan is loud, RMA-4411"),
    "gpu0702": ("brctl:R-0007", "row remap failed"),
}


def make(folder: Path) -> Settings:
    """The fleet's files: configuration, inventory, two jobs, a sweep, an open verdict."""
    files = {f"{name}.yaml": JOB % (name, nodes) for name, nodes in JOBS.items()}
    for name, text in {"config.yaml": CONFIG, "inventory.yaml": INVENTORY, **files}.items():
        (folder / name).write_text(text)
    settings = load_settings({"HOME": str(folder)}, config=folder / "config.yaml")
    remember(settings.state_dir, NODES)
    verdict = replace(
        site_verdict(0.97), id="V-7K3Q", suspects=(Suspect(SUSPECT, ("gpu:index-5",), (1261,)),),
        job="llm-70b", job_step=STALL_STEP,
    )  # fmt: skip
    verdict_store.save(settings.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    return settings


def _ranks(job: Job) -> tuple[RankView, ...]:
    lost = job.name == "llm-70b"
    return tuple(
        RankView(
            rank, node, alive=not (lost and node == SUSPECT), step=STALL_STEP,
            phase="all_reduce", phase_age_s=84.0 if lost else 0.4,
        )
        for node in job.nodes for rank in job.ranks_on(node)
    )  # fmt: skip


def _seen(job: Job) -> JobSeen:
    """One job stands since a minute and a half; the other takes its steps."""
    at = NOON + timedelta(seconds=90)
    windows = tuple(
        StepWindow(n * 900, 20, 2.02 + 0.03 * (n % 3), 0.3, loss=2.9 - 0.06 * n) for n in range(20)
    )
    if job.name != "llm-70b":
        look = JobLook(job.name, at, JobState.PROGRESSING, 51877, 0.4, 1.31, 1.29)
        return JobSeen(
            look, JobStatus(job, _ranks(job), 51877, 0.4, False, (), StepHistory(windows))
        )
    look = JobLook(job.name, at, JobState.STALLED, STALL_STEP, 84.0, 2.04, 2.05)
    return JobSeen(
        look,
        JobStatus(job, _ranks(job), STALL_STEP, 84.0, True, (), StepHistory(windows, windows[-1])),
    )


class PictureEngine(NoEngine):
    """What the scheduler and the ranks of that fleet would say."""

    def __init__(self, jobs: tuple[Job, ...], cordons: Mapping[str, tuple[str, str]]) -> None:
        self._jobs, self._cordons = jobs, cordons

    async def placement(self) -> SchedulerState:
        return SchedulerState(self._cordons, self._jobs, "1 node taken in 6h00 + 0 now = 1 <= 5")

    async def look_at_jobs(self) -> tuple[JobSeen, ...]:
        return tuple(map(_seen, self._jobs))


def fleet_app(settings: Settings) -> BrctlApp:
    """The app on that fleet, a minute and a half after the sweep."""
    now_at = NOON + timedelta(seconds=95)
    jobs = tuple(load_job(path) for path in settings.jobs)
    reader = DiskStateReader(settings, lambda: now_at)
    engine = PictureEngine(jobs, CORDONS)
    return BrctlApp(reader, engine, Address(), now=lambda: now_at, theme=DARK)
