"""In-place hot update against a full requeue of the same job: `python -m tests.bench.hot_update`.

A real torch job on a lab, timed from the request to the first step beyond the last one it made. The
hot update is the shipped playbook: code changes, nodes and environment stay. The requeue is what a
scheduler does with a job that is submitted anew: stop it, give all nodes back, boot nodes, check
each one before it is admitted, start cold ranks.
"""

import argparse
import asyncio
import json
import signal
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from brctl.actions.standby_acquire import ADMISSION_LEVEL
from brctl.engine.remediate import RunView
from brctl.journal.store import read_journal
from brctl.lab.cluster import Lab, up
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.event import EventType
from tests.scenarios.code_site import CodeSite, open_site

PAPER = (
    "paper, Table 7: hot update 46-65 s, requeue 454-768 s on 2,048 to 16,384 GPUs: 11.04x.\n"
    "Why ours differs: there a requeue allocates and builds thousands of pods (scheduler, image,\n"
    "libraries); a lab node boots in a fraction of a second from files that are in memory.\n"
    "Not in our requeue: queueing, image pull, installation, the checks of level 2, far storage.\n"
    "What both of ours pay in full is the start of the ranks (importing torch): it dominates here."
)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one change of code, by phase."""

    phases: dict[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.phases.values())


async def hot_update(site: CodeSite, release: str) -> Timing:
    """What `brctl job update --code RELEASE -m WHY --urgent` does."""
    began, old_step = monotonic(), site.last_step()
    site.release(release)
    await site.wish(release, urgent=True)
    recorded = monotonic()
    run = await site.play("hot-update", only="urgent", steps=1)
    assert run.state == "ok", run.record.failed_error
    phases = {"record and check copies": recorded - began, **_steps_of(run)}
    await site.steps_until(old_step + 1)
    phases["rest"] = monotonic() - began - sum(phases.values())
    return Timing(phases)


def _steps_of(run: RunView) -> dict[str, float]:
    """Seconds of every step of a run; proving it is waiting for the first new step."""
    return {
        str(event.fields["step"]): float(str(event.fields["seconds"]))
        for event in read_journal(run.run_dir).events
        if event.type is EventType.STEP_RESULT
    }


async def requeue(site: CodeSite, name: str) -> Timing:
    """Stop all, nodes back, nodes new, each checked, cold start from the newest checkpoint."""
    clock = _Clock()
    job = await site.ground.job("lab-train")
    await site.world.backend.stop_job(job, 5.0)
    old_step = site.last_step()
    clock.note("stop")
    await asyncio.to_thread(_boot_anew, site.lab, job.nodes)
    clock.note("boot nodes")
    found = await site.ground.examine(job.nodes, ADMISSION_LEVEL)
    assert len(found) == len(job.nodes)
    clock.note("check nodes")
    newest = await asyncio.to_thread(_newest_whole, Path(job.checkpoint_dir))
    started = await site.world.backend.start_job(job, str(newest), name)
    assert not started.failed, started
    clock.note("start ranks")
    await site.steps_until(old_step + 1)
    clock.note("first new step")
    return Timing(clock.phases)


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


async def measure(nodes: int, repeats: int, folder: Path) -> dict[str, list[Timing]]:
    """Hot updates and requeues in turn, so that both see the same machine."""
    spec = LabSpec(nodes=nodes, standbys=0, gpus=1, isolation=Isolation.NONE, checkpoint_every=5)
    found: dict[str, list[Timing]] = {"hot update": [], "requeue": []}
    lab = up(spec, folder / "lab")
    lab.adopt_children()
    try:
        async for site in open_site(lab, folder, nodes):
            for number in range(repeats):
                found["hot update"].append(await hot_update(site, f"h{number}"))
                await site.steps_until(site.last_step() + 6)
                found["requeue"].append(await requeue(site, f"requeue-{number}"))
                await site.steps_until(site.last_step() + 6)
    finally:
        lab.down()
    return found


def report(found: dict[str, list[Timing]]) -> dict[str, float]:
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
