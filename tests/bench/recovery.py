"""One node lost: swap in a parked, a warm or a cold standby, or queue the whole job again.

    python -m tests.bench.recovery [--rounds 3] [--nodes 4] [--isolation none] [--only ROW ...]

The same torch job on the same lab, over real SSH, the rows in turns, medians at the end. Seconds
from the fault command to the first step of the restarted job; finding the fault (`detect`) is the
same in every row, stands apart and is in no ratio. The swaps are real runs of swap-and-resume in
their own process, journal and guards included; the requeue is what a site does without standbys:
stop, take other nodes, install the job's environment on every node, a prologue with the checks of
level 2 on each, start every rank. A cold node needs the installation, too. The ranks themselves
start from this Python in every row, because a parked process must be a plain Python.
"""

import argparse
import asyncio
import contextlib
import ctypes
import importlib.util
import itertools
import json
import mmap
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from brctl.actions.registry import ACTIONS
from brctl.backends.ranks.parking import Parking
from brctl.engine.application.diagnose import DiagnosisScope, look_once
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.job.diagnose import keep
from brctl.engine.runs.context import run_context
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import start_run
from brctl.engine.runs.run_files import RunRequest
from brctl.engine.standby.care import parking, warm_standbys
from brctl.engine.standby.pool import Pool
from brctl.engine.standby.pool_file import save_pool
from brctl.engine.sweeps.run_checks import Question, sweep_nodes
from brctl.journal.follow import follow
from brctl.journal.store import read_journal
from brctl.lab.cluster import Lab, leftovers, up
from brctl.lab.interrupts import signals_as_exceptions
from brctl.lab.spec import Isolation, LabSpec, parse_isolation
from brctl.library.config import load_settings
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.jobs.job import Job
from brctl.model.runs.event import EventType
from brctl.model.sweeps.sweep import Health
from brctl.model.units import rfc3339
from brctl.model.verdict import Confidence, Verdict
from brctl.playbook.approvals import confirmation_text
from tests.bench import hot_update

WARM_STEPS = 14
"""Past the first checkpoint."""
TIMEOUT_S = 300.0
LEASE_S = 3600.0
GRACE_S = 30.0
HOT_UPDATE = "hot update"
PAPER = {"swap": 10.87, HOT_UPDATE: 11.04}
"""ByteRobust, arXiv 2509.16293, section 8.2.1: times faster than a requeue."""

# Steps of swap-and-resume by the phase they are shown in; what is between them is plan and guards.
# While several steps run, the time is that of the phase which is listed last.
PHASES = {
    "evidence": ("evidence",),
    "reserve": ("cordon", "ckpt", "reserve"),
    "stop": ("stop",),
    "swap": ("swap", "choose"),
    "start": ("restart",),
}
COLUMNS = ("plan", *PHASES, "install", "checks", "first step")


@dataclass
class RecoveryTiming:
    """One recovery: seconds by phase, and what has to be said about it.

    Attributes:
        steps: Of a run, each step with the seconds since the verdict at which it began and ended.
    """

    detect_s: float
    phases: dict[str, float] = field(default_factory=dict)
    say: str = ""
    steps: tuple[tuple[str, float, float], ...] = ()

    @property
    def total_s(self) -> float:
        return sum(self.phases.values())

    @property
    def bare_s(self) -> float:
        """Without installation and prologue: here the nodes share the cores that these load."""
        return self.total_s - sum(self.phases.get(name, 0.0) for name in ("install", "checks"))


class Bench:
    """One lab, many recoveries."""

    def __init__(self, lab: Lab, fault: str) -> None:
        self._lab, self._fault = lab, fault
        self._settings = load_settings({"HOME": str(lab.paths.root)}, config=lab.paths.config)
        self._count = 0
        spec = lab.record.spec
        self._culprit, self._standby = f"n{spec.nodes}", f"n{spec.nodes + 1}"

    @asynccontextmanager
    async def trained(self) -> AsyncIterator[Controller]:
        """A sound job on a lab as new, some steps after its first checkpoint."""
        await asyncio.to_thread(self._lab.heal)
        async with open_controller(self._settings) as controller:
            await self._end(controller)
            for folder in (self._settings.state_dir, *self._folders(controller.job(None))):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(mode=0o700)
        async with open_controller(self._settings) as controller:
            job = controller.job(None)
            self._count += 1
            started = await controller.backend.start_job(job, "", f"bench-{self._count}")
            if started.failed:
                raise SystemExit(f"the job does not start: {dict(started.failed)}")
            await self._until(lambda: self._steps(job, 0.0) >= WARM_STEPS, "training", job)
            yield controller
            await self._end(controller)

    async def _end(self, controller: Controller) -> None:
        """No rank and no parked process of this job anywhere."""
        job = await controller.backend.place(controller.job(None))
        nodes = list(controller.inventory.nodes)
        everywhere = replace(job, nodes=tuple(nodes), axes=())
        await parking(controller).unpark(everywhere, nodes)
        await controller.backend.stop_job(everywhere, 0.5)

    def _folders(self, job: Job) -> tuple[Path, ...]:
        return Path(job.log_dir), Path(job.progress_dir), Path(job.checkpoint_dir)

    async def break_and_find(self, controller: Controller) -> tuple[float, Verdict]:
        """Seconds until a verdict that is at least likely names the node; then recovery begins."""
        began = time.monotonic()
        await asyncio.to_thread(self._lab.break_node, self._fault, self._culprit)
        while True:
            job = controller.job(None)
            found = await look_once(controller, DiagnosisScope(job, job.nodes), print)
            main = found.verdicts[0]
            if main.nodes and main.confidence is not Confidence.LOW:
                if main.nodes != (self._culprit,):
                    raise SystemExit(f"{main.nodes} named, {self._culprit} broken")
                keep(controller, found)
                return time.monotonic() - began, main
            if time.monotonic() - began > TIMEOUT_S:
                raise SystemExit(f"no verdict: {main.fault} {main.nodes}")
            await asyncio.sleep(0.2)

    async def swap(
        self, ready: Callable[[Controller], Awaitable[str]], *, evict: bool = False
    ) -> RecoveryTiming:
        """A run of swap-and-resume on a standby that was made ready in some way."""
        async with self.trained() as controller:
            say = await ready(controller)
            detect_s, verdict = await self.break_and_find(controller)
            timing = RecoveryTiming(detect_s, say=say)
            if evict:
                with phase(timing, "install"):
                    await hot_update.install(controller, [self._standby])
            began = time.time()
            context = run_context(controller)
            playbook = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
            prepared = await prepare(context, playbook, verdict)
            typed = confirmation_text(playbook, len(prepared.plan.nodes), controller.job(None).name)
            config = str(self._settings.config_file)
            request = RunRequest("bench", self._settings.context, config, yes=True, typed=typed)
            run_dir = await start_run(context, prepared, request)
            async for event in follow(run_dir, poll_s=0.02):
                if (
                    evict
                    and event.type is EventType.STEP_RESULT
                    and event.fields.get("step") == "stop"
                ):
                    timing.say = await asyncio.to_thread(evict_torch)
            if read_run(run_dir).state != "ok":
                raise SystemExit(f"{run_dir}: {read_run(run_dir).state}")
            self._fill(timing, run_dir, began, controller.job(None))
            return timing

    def _fill(self, timing: RecoveryTiming, run_dir: Path, began: float, job: Job) -> None:
        """Phases from the journal's own times; the first step from the job's own account."""
        spans: list[tuple[str, float, float]] = []
        intent: dict[str, float] = {}
        for event in read_journal(run_dir).events:
            step, at = str(event.fields.get("step")), event.at.timestamp()
            if event.type is EventType.STEP_INTENT:
                intent[step] = at
            elif event.type is EventType.STEP_RESULT:
                spans.append((step, intent[step], at))
                timing.say += str(event.fields.get("say")) if step == "restart" else ""
        timing.steps = tuple((step, start - began, end - began) for step, start, end in spans)
        ended = next(end for step, _, end in spans if step == "restart")
        timing.phases |= phases_of(spans, began, ended)
        timing.phases["first step"] = self._first_step(job, ended) - ended

    async def requeue(self) -> RecoveryTiming:
        """The whole job again: every node released and checked, every rank started from nothing."""
        async with self.trained() as controller:
            timing = RecoveryTiming((await self.break_and_find(controller))[0])
            backend, job = controller.backend, controller.job(None)
            with phase(timing, "stop"):
                await backend.stop_job(job, GRACE_S)
            with phase(timing, "swap"):
                job = await backend.replace_nodes(job, {self._culprit: self._standby})
                site = run_context(controller)
                chosen = await ACTIONS["ckpt.select"].apply(site, {"job": job.name})
            with phase(timing, "install"):
                await hot_update.install(controller, job.nodes)
            with phase(timing, "checks"):
                await sweep_nodes(controller, job.nodes, Question(level=2))
            with phase(timing, "start"):
                report = await backend.start_job(job, str(chosen.out["path"]), "requeued")
            if report.failed or report.warm:
                raise SystemExit(f"no cold start: {report}")
            ended = time.time()
            await self._until(lambda: self._steps(job, ended) > 0, "the first step", job)
            timing.phases["first step"] = self._first_step(job, ended) - ended
            return timing

    async def parked(self, controller: Controller) -> str:
        """The standby parked, the other nodes start cold."""
        return await self._park(controller, [self._standby])

    async def parked_all(self, controller: Controller) -> str:
        """The standby parked, and on the job's own nodes a process for the next start."""
        return await self._park(controller, [self._standby, *controller.job(None).nodes])

    async def _park(self, controller: Controller, nodes: Sequence[str]) -> str:
        job = controller.job(None)
        door = Parking(controller.transport, controller.inventory, 64)
        found = await door.park(job, nodes, LEASE_S)
        if not all(each.is_whole for each in found.values()):
            raise SystemExit(f"not parked: {found}")
        at = rfc3339(controller.now())
        standby = replace(
            Pool().of(self._standby), parked_for=job.name, parked_at=at, warmed_at=at,
            tested_at=at, health=Health.OK.value,
        )  # fmt: skip
        save_pool(self._settings.state_dir, self._settings.context, Pool().with_known([standby]))
        return ""

    async def warm(self, controller: Controller) -> str:
        """The standby has read torch once: it is in the page cache."""
        pool = await warm_standbys(controller, Pool(), [self._standby])
        save_pool(self._settings.state_dir, self._settings.context, pool)
        return ""

    async def cold(self, controller: Controller) -> str:
        return ""

    def _first_step(self, job: Job, after: float) -> float:
        return next(at for at in self._times(job) if at > after)

    def _steps(self, job: Job, after: float) -> int:
        return sum(at > after for at in self._times(job))

    def _times(self, job: Job) -> list[float]:
        """When rank 0 finished each step; the last line may be half written."""
        path = Path(job.progress_dir) / "steps.ndjson"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [float(json.loads(line)["at"]) for line in lines]

    async def _until(self, happened: Callable[[], bool], what: str, job: Job) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not happened():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what} did not come within {TIMEOUT_S:.0f} s; see {job.log_dir}")
            await asyncio.sleep(0.02)


def phases_of(
    spans: Sequence[tuple[str, float, float]], began: float, ended: float
) -> dict[str, float]:
    """Seconds by phase from one moment to another; they are disjoint and sum up to all of it."""
    marks = sorted({began, ended, *(at for _, *both in spans for at in both if began < at < ended)})
    found = dict.fromkeys(("plan", *PHASES), 0.0)
    for start, end in itertools.pairwise(marks):
        running = {step for step, since, until in spans if since <= start and end <= until}
        names = [name for name, steps in PHASES.items() if running & set(steps)]
        found[names[-1] if names else "plan"] += end - start
    return found


@contextlib.contextmanager
def phase(timing: RecoveryTiming, name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    timing.phases[name] = time.monotonic() - began


def evict_torch() -> str:
    """Ask the kernel to forget torch's libraries; what others have mapped it keeps."""
    spec = importlib.util.find_spec("torch")
    folder = Path(str(spec and spec.origin)).parent
    files = [path for path in folder.rglob("*") if path.suffix in (".so", ".py", ".pyc")]
    for path in files:
        with path.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    big = [path for path in files if path.suffix == ".so" and path.stat().st_size > 1 << 20]
    size = sum(path.stat().st_size for path in big)
    kept = sum(resident_bytes(path) for path in big)
    return f"{100 * kept / size:.0f} % of {size >> 20} MiB of torch's libraries stayed in memory; "


def resident_bytes(path: Path) -> int:
    """How much of a file is in the page cache."""
    with (
        path.open("rb") as stream,
        mmap.mmap(
            stream.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
        ) as area,
    ):
        pages = -(-len(area) // mmap.PAGESIZE)
        vector = (ctypes.c_ubyte * pages)()
        start = ctypes.addressof(ctypes.c_char.from_buffer(area))
        if ctypes.CDLL(None).mincore(ctypes.c_void_p(start), ctypes.c_size_t(len(area)), vector):
            return 0
    return sum(page & 1 for page in vector) * mmap.PAGESIZE


ROWS: Mapping[str, Callable[[Bench], Awaitable[RecoveryTiming]]] = {
    "parked everywhere": lambda bench: bench.swap(bench.parked_all),
    "parked standby": lambda bench: bench.swap(bench.parked),
    "warm standby": lambda bench: bench.swap(bench.warm),
    "cold node": lambda bench: bench.swap(bench.cold, evict=True),
    "requeue": Bench.requeue,
}


async def measure(
    bench: Bench, rounds: int, only: Sequence[str]
) -> Mapping[str, list[RecoveryTiming]]:
    """All rows in turns, so that every row meets the same disturbances."""
    found: dict[str, list[RecoveryTiming]] = {name: [] for name in ROWS if not only or name in only}
    for number in range(rounds):
        for name, times in found.items():
            times.append(await ROWS[name](bench))
            last = times[-1]
            parts = "  ".join(f"{k} {v:.1f}" for k, v in last.phases.items() if v >= 0.05)
            print(f"round {number + 1}  {name:<18}{last.total_s:6.1f} s  detect"
                  f" {last.detect_s:.1f} s  load {os.getloadavg()[0]:.1f}  {parts}  {last.say}",
                  flush=True)  # fmt: skip
            print("".join(f"    {s} {b:.2f}-{e:.2f}" for s, b, e in last.steps), flush=True)
    return found


def report(found: Mapping[str, Sequence[RecoveryTiming]]) -> str:
    """The medians, phase by phase, and the ratios."""

    def median(times: Sequence[RecoveryTiming], what: Callable[[RecoveryTiming], float]) -> float:
        return statistics.median(what(timing) for timing in times)

    head = f"{'':<18}{'detect':>8}" + "".join(f"{name:>11}" for name in COLUMNS) + f"{'total':>9}"
    lines = ["", "seconds, medians; total without detect", head]
    for name, times in found.items():
        cells = [median(times, lambda t, c=column: t.phases.get(c, 0.0)) for column in COLUMNS]  # type: ignore[misc]  # the default binds the column
        lines.append(
            f"{name:<18}{median(times, lambda t: t.detect_s):>8.1f}"
            + "".join(f"{cell:>11.1f}" for cell in cells)
            + f"{median(times, lambda t: t.total_s):>9.1f}"
        )
    if "requeue" in found:
        whole = median(found["requeue"], lambda t: t.total_s)
        bare = median(found["requeue"], lambda t: t.bare_s)
        lines += [
            "",
            f"a requeue takes so many times as long (paper: {PAPER['swap']} x a warm standby)",
        ]
        for name, times in found.items():
            if name != "requeue":
                own = median(times, lambda t: t.total_s)
                lines.append(
                    f"{name:<18}{whole / own:6.2f} x, without installation and checks"
                    f" {bare / median(times, lambda t: t.bare_s):.2f} x"
                )
        lines += ["", WHY]
    return "\n".join(lines)


WHY = """\
Ours differ because the paper's requeue waits in a queue, pulls images and initialises a thousand
machines, and ours only installs from this disk, checks and starts; and because here all nodes share
the cores and the disk of one machine, so that these two come one node after the other."""


@contextlib.contextmanager
def taken_down(lab: Lab) -> Iterator[None]:
    """Whatever happens in between, nothing of the lab is left."""
    try:
        yield
    finally:
        lab.down()


def main() -> None:
    """Read the flags, build the lab, measure, take it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--isolation", default="auto")
    parser.add_argument("--only", action="append", default=[], choices=(*ROWS, HOT_UPDATE))
    chosen = parser.parse_args()
    spec = LabSpec(
        nodes=chosen.nodes, standbys=1, gpus=1, isolation=parse_isolation(chosen.isolation),
        stall_after_s=5.0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="brctl-recovery-") as folder:
        lab = up(spec, Path(folder) / "lab")
        with signals_as_exceptions(), taken_down(lab):
            lab.adopt_children()
            isolated = lab.record.isolation is Isolation.NETNS
            fault = "node-dead" if isolated else "gpu-lost"
            isolation = lab.record.isolation.value
            print(f"{chosen.nodes} nodes, 1 standby, isolation {isolation}, fault {fault},"
                  f" {os.cpu_count()} cores")  # fmt: skip
            record = lab.record
            found = asyncio.run(measure(Bench(lab, fault), chosen.rounds, chosen.only))
        print(report(found))
        print(f"processes left behind: {len(leftovers(record))}", flush=True)
        if not chosen.only or HOT_UPDATE in chosen.only:
            print(
                f"\n{HOT_UPDATE}, against a requeue of its own lab (paper: {PAPER[HOT_UPDATE]} x)"
            )
            hot_update.report(
                asyncio.run(hot_update.measure(chosen.nodes, chosen.rounds, Path(folder) / "hot"))
            )


if __name__ == "__main__":
    main()
