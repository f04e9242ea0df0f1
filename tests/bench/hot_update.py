"""In-place hot update against a full requeue of the same job: `python -m tests.bench.hot_update`.

A real torch job on a lab, timed from the request to the first step beyond the last one it made. The
hot update is the shipped playbook: code changes, nodes and environment stay. The requeue is what a
scheduler does with a job that is submitted anew: stop it, give all nodes back, boot nodes, install
the job's environment on each (a venv with a copy of every package: the image), check each one
before it is admitted, start the ranks.
"""

import argparse
import asyncio
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import yaml

from brctl.actions.standby.acquire import ADMISSION_LEVEL
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.journal.store import read_journal
from brctl.lab.cluster import Lab, up
from brctl.lab.spec import Isolation, LabSpec
from brctl.library.config import load_settings
from brctl.model.command import Command
from brctl.model.runs.event import EventType
from brctl.playbook.run import Run
from tests.scenarios.code_site import CodeSite, open_site

PAPER = """\
paper, Table 7: hot update 46-65 s, requeue 454-768 s on 2,048 to 16,384 GPUs: 11.04x.
Why ours differs: there a requeue allocates and builds thousands of pods. Here a node boots in a
moment, the environment comes from this disk, nobody queues, no image is pulled, checks are those
of level 1. Both pay in full for the start of the ranks (importing torch), and the hot update for
what makes it safe: copies digested, checkpoints read, a journal, a process of its own."""

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
START = 'exec "$HOME/env/bin/python" "$@"'


@dataclass(frozen=True, slots=True)
class UpdateTiming:
    """Seconds of one change of code, by phase."""

    phases: dict[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.phases.values())


async def hot_update(site: CodeSite, release: str) -> UpdateTiming:
    """What `brctl job update --code RELEASE -m WHY --urgent` does."""
    began, old_step = monotonic(), site.last_step()
    site.release(release)
    await site.request(release, urgent=True)
    recorded = monotonic()
    run = await site.play("hot-update", only="urgent", steps=1)
    assert run.state == "ok", run.record.failed_error
    phases = {"record and check copies": recorded - began, **_steps_of(run)}
    await site.steps_until(old_step + 1)
    phases["rest"] = monotonic() - began - sum(phases.values())
    return UpdateTiming(phases)


def _steps_of(run: Run) -> dict[str, float]:
    """Seconds of every step of a run; proving it is waiting for the first new step."""
    return {
        str(event.fields["step"]): float(str(event.fields["seconds"]))
        for event in read_journal(run.run_dir).events
        if event.type is EventType.STEP_RESULT
    }


async def requeue(site: CodeSite, name: str) -> UpdateTiming:
    """Stop all, nodes back, nodes new, each checked, cold start from the newest checkpoint."""
    clock = _Clock()
    job = await site.context.jobs.get("lab-train")
    await site.controller.backend.stop_job(job, 5.0)
    old_step = site.last_step()
    clock.note("stop")
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
    clock.note("start ranks")
    await site.steps_until(old_step + 1)
    clock.note("first new step")
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


def start_with_environment(lab: Lab) -> None:
    """Let the job's ranks use the environment of their node."""
    document = yaml.safe_load(lab.paths.job.read_text())
    document["launch"][:1] = ["/bin/sh", "-c", START, "sh"]
    lab.paths.job.write_text(yaml.safe_dump(document))


class _Clock:
    """Names the time that went by since the last note."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._last = monotonic()

    def note(self, phase: str) -> None:
        now = monotonic()
        self.phases[phase] = now - self._last
        self._last = now


def _newest_whole(checkpoints: Path) -> Path:
    return sorted(path for path in checkpoints.iterdir() if (path / ".metadata").exists())[-1]


def _boot_anew(lab: Lab, nodes: tuple[str, ...]) -> None:
    for node in nodes:
        lab.break_node("node-dead", node)
    lab.heal()


async def measure(nodes: int, repeats: int, folder: Path) -> dict[str, list[UpdateTiming]]:
    """Hot updates and requeues in turn, so that both see the same machine."""
    spec = LabSpec(nodes=nodes, standbys=0, gpus=1, isolation=Isolation.NONE, checkpoint_every=5)
    found: dict[str, list[UpdateTiming]] = {"hot update": [], "requeue": []}
    lab = up(spec, folder / "lab")
    lab.adopt_children()
    try:
        CodeSite(lab).write_job(nodes)
        start_with_environment(lab)
        settings = load_settings({"HOME": str(folder)}, config=lab.paths.config)
        async with open_controller(settings) as controller:
            await install(controller, tuple(lab.nodes))
        async for site in open_site(lab, folder, nodes):
            for number in range(repeats):
                found["hot update"].append(await hot_update(site, f"h{number}"))
                await site.steps_until(site.last_step() + 6)
                found["requeue"].append(await requeue(site, f"requeue-{number}"))
                await site.steps_until(site.last_step() + 6)
    finally:
        lab.down()
    return found


def report(found: dict[str, list[UpdateTiming]]) -> dict[str, float]:
    """Print medians by phase and the ratio of the totals."""
    medians = {}
    for name, timings in found.items():
        medians[name] = statistics.median(t.total_s for t in timings)
        middle = min(timings, key=lambda t: abs(t.total_s - medians[name]))
        phases = ", ".join(f"{key} {value:.1f}" for key, value in middle.phases.items())
        print(f"{name:<11} {medians[name]:6.1f} s  ({phases})  n={len(timings)}")
    ratio = medians["requeue"] / medians["hot update"]
    print(f"requeue / hot update = {ratio:.2f}x")
    print(PAPER)
    return {**{f"{name} (s)": value for name, value in medians.items()}, "ratio": ratio}


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
