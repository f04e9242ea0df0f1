"""The main job, end to end: train, break a node, find it, swap it, train on past the old step.

Everything below the breaking is what a person would do on a real cluster, through the same engine.
"""

import asyncio
import json
import random
import signal
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TypeVar

from brctl.engine.application.diagnose import conclude
from brctl.engine.application.fix import choose_fix, plan_fix, start_planned
from brctl.engine.application.runs import request_for
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.incidents import verdict_store
from brctl.engine.job.diagnose import Diagnosis, diagnose_once
from brctl.engine.runs.context import run_context
from brctl.engine.runs.read_run import read_run
from brctl.journal.follow import follow
from brctl.lab.cluster import Lab, up
from brctl.lab.faults import FAULTS
from brctl.lab.spec import LabSpec
from brctl.library.config import load_settings
from brctl.model.demo import DemoResult
from brctl.model.errors import UnavailableError
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import RunState
from brctl.model.verdict import Confidence, Verdict

WARM_STEPS = 25
"""Steps before the fault: enough for two checkpoints and a loss curve."""

ROUNDS = 2
"""A job that hangs is restarted in place first; its node is evicted when it hangs there again."""

PHASE_TIMEOUT_S = 180.0
"""A phase that takes longer than this has failed; nothing waits for ever."""

_PHASES = {
    "start": f"starting the job and training {WARM_STEPS} steps",
    "park": "testing the standbys and parking processes on every node",
    "watch": "the watcher is on its own",
    "diagnose": "looking for the fault",
    "fix": "planning and running the fix",
    "resume": "waiting for a step beyond the old one",
}

_SETTLED = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
Say = Callable[[str], None]
T = TypeVar("T")


async def run_demo(
    spec: LabSpec,
    directory: Path,
    fault: str,
    seed: int,
    say: Say,
    tell: Say = lambda _: None,
    played: "type[Demo] | None" = None,
) -> DemoResult:
    """Bring the lab up, do the main job, and take the lab down whatever happens.

    `say` is told what was reached, `tell` what goes on until the next thing is.
    """
    started = monotonic()
    tell(f"bringing up {spec.nodes + spec.standbys} nodes")
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _terminate)
    # Not in a thread: Ctrl-C would end this task while the thread went on building, and nobody
    # would take the finished lab down (tests/lab/test_demo.py).
    lab = up(spec, directory)
    try:
        # A run is a process of its own that outlives its starter; here it must not outlive the lab.
        lab.adopt_children()
        say(f"lab: {spec.nodes} nodes and {spec.standbys} standbys, {lab.record.isolation.value}")
        settings = load_settings({"HOME": str(directory)}, config=lab.paths.config)
        async with open_controller(settings) as controller:
            demo = (played or Demo)(lab, controller, fault, random.Random(seed), say, tell)  # noqa: S311  # picks a node
            demo.result.seconds["up"] = monotonic() - started
            return await demo.play()
    finally:
        tell("taking the lab down")
        await asyncio.to_thread(lab.down)


def _terminate() -> None:
    """Let a polite kill take the lab down, as Ctrl-C does."""
    raise SystemExit(128 + signal.SIGTERM)


class Demo:
    """One play of the demo; each method is a phase."""

    def __init__(
        self, lab: Lab, controller: Controller, fault: str, rng: random.Random, say: Say, tell: Say
    ) -> None:
        self.lab, self.controller, self.say, self.tell = lab, controller, say, tell
        self.job: Job = controller.job(None)
        self.fault = fault
        self.node = rng.choice(sorted(self.job.nodes))
        expected = FAULTS[fault].expected if fault in FAULTS else ""
        self.result = DemoResult(fault, expected, self.node)

    async def play(self) -> DemoResult:
        """All phases in order; stops where one cannot go on, and the result says where."""
        await self._phase("start", self._train())
        truth = await asyncio.to_thread(self.lab.break_node, self.fault, self.node)
        self.result.subject = truth.subject
        self.say(f"broken: {truth.say}")
        for _ in range(ROUNDS):
            found = await self._phase("diagnose", self._diagnose())
            if found is None:
                return self.result
            if not found.verdicts[0].playbook:
                break
            await self._phase("fix", self._fix(found.verdicts[0]))
            if self.result.run_result == RunState.OK:
                break
        await self._phase("resume", self._resumed())
        return self.result

    async def _phase(self, name: str, work: Coroutine[object, object, T]) -> T:
        started = monotonic()
        self.tell(_PHASES[name])
        try:
            return await work
        finally:
            seconds = self.result.seconds
            seconds[name] = seconds.get(name, 0.0) + monotonic() - started

    async def _train(self) -> None:
        started = await self.controller.backend.start_job(self.job, "", "demo")
        if started.failed:
            raise UnavailableError(f"the job did not start: {dict(started.failed)}")
        await self._until(lambda: self._last_step() >= WARM_STEPS, "the first steps of training")
        self.say(f"training: {self.job.world_size} ranks, step {self._last_step()}")

    async def _diagnose(self) -> Diagnosis | None:
        """Look every second until the verdict is at least likely; never before it is."""
        broken_at, deadline = monotonic(), monotonic() + PHASE_TIMEOUT_S
        while monotonic() < deadline:
            found = await diagnose_once(self.controller, self.job, self.job.nodes)
            main = found.verdicts[0]
            stalled = found.status is not None and found.status.stalled is True
            if stalled or main.fault not in _SETTLED:
                self.result.seconds.setdefault("detect", monotonic() - broken_at)
            if main.fault not in _SETTLED and main.confidence is not Confidence.LOW:
                await conclude(self.controller, found, self.say)
                self.result.verdict = main
                self.result.old_step = max(self._last_step(), self.result.old_step or 0)
                self.say(
                    f"verdict: {main.id} {main.fault.value} {','.join(main.nodes) or '-'}"
                    f" {main.confidence.value} {main.probability:.2f}; do {main.action.value}"
                )
                return found
            await asyncio.sleep(1.0)
        self.say(f"no verdict within {PHASE_TIMEOUT_S:.0f} s")
        return None

    async def _fix(self, verdict: Verdict) -> None:
        """What `brctl fix` does, with the words typed that it asks for."""
        context, settings = run_context(self.controller), self.controller.settings
        stored = verdict_store.load(self.controller.state_dir, verdict.id)
        fix = await plan_fix(context, choose_fix(settings, stored, self.controller.now()))
        request = replace(request_for(settings, yes=True, typed=fix.words), by="lab demo")
        run_dir = await start_planned(context, settings, fix.prepared, request)
        self.result.run = run_dir.name
        async for event in follow(run_dir):
            if event.type is EventType.STEP_RESULT:
                told = event.fields.get("say") or event.fields.get("error")
                self.say(f"{run_dir.name}: {event.fields.get('step')} {told}")
        self._read_run(run_dir)

    def _read_run(self, run_dir: Path) -> None:
        run = read_run(run_dir)
        self.result.run_result = run.state
        self.result.steps = tuple(run.record.steps)
        for record in run.record.steps.values():
            path, step = record.out.get("path"), record.out.get("step")
            if isinstance(path, str) and isinstance(step, int):
                self.result.checkpoint, self.result.checkpoint_step = path, step
        self.say(f"{run_dir.name}: {run.state}")

    async def _resumed(self) -> None:
        old = self.result.old_step or 0
        await self._until(lambda: self._last_step() > old, f"a step after {old}")
        self.result.first_new_step = old + 1
        self._compare_losses()
        self.say(f"training: passed its old step {old}, now at {self._last_step()}")

    def _compare_losses(self) -> None:
        """The first step trained twice must have given the same loss twice, bit by bit."""
        first: dict[int, float] = {}
        for row in self._rows():
            step, loss = row.get("step"), row.get("loss")
            if not isinstance(step, int) or not isinstance(loss, float):
                continue
            if step in first:
                self.result.replayed_step, self.result.losses = step, (first[step], loss)
                return
            first[step] = loss

    async def _until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + PHASE_TIMEOUT_S
        while not happened():
            if monotonic() > deadline:
                raise UnavailableError(
                    f"{what} did not come within {PHASE_TIMEOUT_S:.0f} s",
                    hint=f"see {self.job.log_dir}",
                )
            await asyncio.sleep(0.2)

    def _last_step(self) -> int:
        steps = [row["step"] for row in self._rows() if isinstance(row.get("step"), int)]
        return int(str(steps[-1])) if steps else -1

    def _rows(self) -> list[dict[str, Json]]:
        """Rank 0's own account; the lab's nodes share this machine's file system."""
        path = Path(self.job.progress_dir) / "steps.ndjson"
        if not path.exists():
            return []
        rows = []
        for line in path.read_bytes().splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue  # the last line is being written
        return rows
