"""In-place hot update against a full requeue of the same job: `python -m tests.bench.hot_update`.

A real torch job on a lab, timed from the request to the end of the first step beyond the last one
it made, by the times in the job's own record of steps. The hot update is the shipped playbook: code
changes, nodes and environment stay; once with the next start's processes parked beside the ranks,
as `standby warm` does, once without. The requeue is what a scheduler does with a job that is
submitted anew: stop it, give all nodes back, boot nodes, install the job's environment on each (a
venv with a copy of every package: the image), check each one before it is admitted, start the
ranks. These start from this Python in every row, because a parked process must be a plain Python.
"""

import argparse
import asyncio
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time

from brctl.actions.standby.acquire import ADMISSION_LEVEL
from brctl.engine.controller.wiring import Controller
from brctl.engine.runs.remediate import RUN_PROGRAM
from brctl.engine.standby.care import parking
from brctl.journal.store import read_journal
from brctl.lab.cluster import Lab, up
from brctl.lab.spec import Isolation, LabSpec
from brctl.library.programs.preloaded import preloading
from brctl.model.command import Command
from brctl.model.runs.event import EventType
from brctl.playbook.run import Run
from tests.scenarios.code_site import CodeSite, open_site

PAPER = """\
paper, Table 7: hot update 46-65 s, requeue 454-768 s on 2,048 to 16,384 GPUs: 11.04x.
Why ours differs: there a requeue allocates and builds thousands of pods. Here a node boots in a
moment, the environment comes from this disk, nobody queues, no image is pulled, checks are those
of level 1. The hot update pays for what makes it safe: copies digested, checkpoints read, a
journal, a process of its own; without parked processes also for importing torch."""

# On the node: a virtual environment of its own with a copy of everything the interpreter has.
INSTALL = """
import os, shutil, sys, sysconfig, venv
home = os.path.expanduser("~/env")
shutil.rmtree(home, ignore_errors=True)
venv.create(home, symlinks=True)
version = "python%d.%d" % sys.version_info[:2]
source = sysconfig.get_path("purelib")
shutil.copytree(source, os.path.join(home, "lib", version, "site-packages"), dirs_exist_ok=True)
"""
INSTALL_DEADLINE_S = 300.0
LEASE_S = 3600.0
PARKED, COLD, REQUEUE = "hot update, parked", "hot update", "requeue"


@dataclass(frozen=True, slots=True)
class UpdateTiming:
    """Seconds of one change of code, by phase."""

    phases: dict[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.phases.values())


async def hot_update(site: CodeSite, release: str, *, parked: bool) -> UpdateTiming:
    """What `brctl job update --code RELEASE -m WHY --urgent` does."""
    if parked:
        job = await site.context.jobs.get("lab-train")
        found = await parking(site.controller).park(job, job.nodes, LEASE_S)
        assert all(each.is_whole for each in found.values()), found
    site.release(release)
    began = time()
    with preloading(RUN_PROGRAM) as preloaded:
        await site.request(release, urgent=True)
        phases = {"record and check copies": time() - began}
        run = await site.play("hot-update", preloaded=preloaded, only="urgent", steps=1)
    assert run.state == "ok", run.record.failed_error
    assert site.said() == {release}
    spans, say = spans_of(run)
    ended = spans["restart"][1]
    assert ("in parked processes" in say) == parked, say
    phases["plan and start the run"] = spans["verify"][0] - began - sum(phases.values())
    phases |= {step: end - start for step, (start, end) in spans.items() if step != "prove"}
    phases["between steps"] = ended - began - sum(phases.values())
    phases["first new step"] = first_new_step(site, spans["stop"][1]) - ended
    return UpdateTiming(phases)


def spans_of(run: Run) -> tuple[dict[str, tuple[float, float]], str]:
    """When every step of a run began and ended, and what the restart says of itself."""
    intents: dict[str, float] = {}
    spans, say = {}, ""
    for event in read_journal(run.run_dir).events:
        step = str(event.fields.get("step"))
        if event.type is EventType.STEP_INTENT:
            intents[step] = event.at.timestamp()
        elif event.type is EventType.STEP_RESULT:
            spans[step] = intents[step], event.at.timestamp()
            say = str(event.fields.get("say")) if step == "restart" else say
    return spans, say


def last_step_before(site: CodeSite, stopped_at: float) -> int:
    """The last step that was made before the ranks were gone."""
    return max(step for at, step in site.steps() if at <= stopped_at)


def first_new_step(site: CodeSite, stopped_at: float) -> float:
    """When the first step beyond that one was made; those from the checkpoint on are no news."""
    old = last_step_before(site, stopped_at)
    return next(at for at, step in site.steps() if at > stopped_at and step > old)


async def requeue(site: CodeSite, name: str) -> UpdateTiming:
    """Stop all, nodes back, nodes new, each checked, cold start from the newest checkpoint."""
    clock = _Clock()
    job = await site.context.jobs.get("lab-train")
    await site.controller.backend.stop_job(job, 5.0)
    stopped_at = clock.note("stop")
    await asyncio.to_thread(_boot_anew, site.lab, job.nodes)
    clock.note("boot nodes")
    await install(site.controller, job.nodes)
    clock.note("install environment")
    found = await site.context.sweeps.examine(job.nodes, ADMISSION_LEVEL)
    assert len(found) == len(job.nodes)
    clock.note("check nodes")
    newest = await asyncio.to_thread(_newest_whole, Path(job.checkpoint_dir))
    started = await site.controller.backend.start_job(job, str(newest), name)
    assert not started.failed, started
    assert not started.warm, started
    started_at = clock.note("start ranks")
    await site.steps_until(last_step_before(site, stopped_at) + 1)
    clock.phases["first new step"] = first_new_step(site, stopped_at) - started_at
    return UpdateTiming(clock.phases)


async def install(controller: Controller, nodes: Sequence[str]) -> None:
    """Give every node its environment, all at once."""

    async def on(name: str) -> None:
        node = controller.inventory.nodes[name]
        argv = (node.python, "-I", "-")
        command = Command(argv, stdin=INSTALL.encode(), deadline_s=INSTALL_DEADLINE_S)
        answer = await controller.transport.run(node, command)
        assert answer.exit_status == 0, answer

    await asyncio.gather(*(on(name) for name in nodes))


class _Clock:
    """Names the time that went by since the last note."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._last = time()

    def note(self, phase: str) -> float:
        now = time()
        self.phases[phase] = now - self._last
        self._last = now
        return now


def _newest_whole(checkpoints: Path) -> Path:
    return sorted(path for path in checkpoints.iterdir() if (path / ".metadata").exists())[-1]


def _boot_anew(lab: Lab, nodes: tuple[str, ...]) -> None:
    for node in nodes:
        lab.break_node("node-dead", node)
    lab.heal()


async def measure(nodes: int, repeats: int, folder: Path) -> dict[str, list[UpdateTiming]]:
    """Every row in turns, so that all see the same machine."""
    spec = LabSpec(nodes=nodes, standbys=0, gpus=1, isolation=Isolation.NONE, checkpoint_every=5)
    found: dict[str, list[UpdateTiming]] = {PARKED: [], COLD: [], REQUEUE: []}
    lab = up(spec, folder / "lab")
    lab.adopt_children()
    try:
        async for site in open_site(lab, folder, nodes):
            for number in range(repeats):
                for name, row in rows(site, number).items():
                    found[name].append(await row())
                    await site.steps_until(site.last_step() + 6)
    finally:
        lab.down()
    return found


def rows(site: CodeSite, number: int) -> dict[str, Callable[[], Awaitable[UpdateTiming]]]:
    """What is timed in each round."""
    return {
        PARKED: lambda: hot_update(site, f"p{number}", parked=True),
        COLD: lambda: hot_update(site, f"h{number}", parked=False),
        REQUEUE: lambda: requeue(site, f"requeue-{number}"),
    }


def report(found: dict[str, list[UpdateTiming]]) -> dict[str, float]:
    """Print medians by phase and the ratio of the totals."""
    medians = {}
    for name, timings in found.items():
        medians[name] = statistics.median(t.total_s for t in timings)
        middle = min(timings, key=lambda t: abs(t.total_s - medians[name]))
        phases = ", ".join(f"{key} {value:.1f}" for key, value in middle.phases.items())
        print(f"{name:<19}{medians[name]:6.1f} s  ({phases})  n={len(timings)}")
    ratios = {f"requeue / {name}": medians[REQUEUE] / medians[name] for name in (PARKED, COLD)}
    for name, ratio in ratios.items():
        print(f"{name} = {ratio:.2f}x")
    print(PAPER)
    return {**{f"{name} (s)": value for name, value in medians.items()}, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    flags = parser.parse_args()
    # Ended early, the lab must go as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder:
        figures = report(asyncio.run(measure(flags.nodes, flags.repeats, Path(folder))))
    if flags.json:
        flags.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
