"""`lab demo --watch`: nobody types anything; a watcher finds the fault and starts the fix."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from brctl.engine.application.standby import warm
from brctl.engine.controller.clock import now
from brctl.engine.incidents import verdict_store
from brctl.engine.runs.read_run import sound_runs
from brctl.engine.watch.folder import WatchFolder
from brctl.lab.demo import PHASE_TIMEOUT_S, Demo
from brctl.library.own_program import own_program
from brctl.model.demo import DemoMoment, DemoResult
from brctl.model.errors import UnavailableError
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.result import RunState
from brctl.model.watch.state import WatchRecord
from brctl.playbook.run import Run

POLICY = """\
apiVersion: brctl.dev/v1
kind: WatchPolicy
mode: act
limits: {start_up: 1s, spares_kept: 0}
"""
LEASE_S = 3600.0
RECORDS = 1000
TOLD = ("suspicion", "verdict", "decision")
ENDS_WITHIN_S = 15


class WatchedDemo(Demo):
    """One play with a watcher that may act, and processes parked on every node."""

    async def play(self) -> DemoResult:
        """All phases in order; stops where one cannot go on, and the result says where."""
        await self._phase("start", self._train())
        await self._phase("park", self._park())
        async with self._watcher():
            truth = await asyncio.to_thread(self.lab.break_node, self.fault, self.node)
            broke_at = now()
            self.result.subject = truth.subject
            self.say(f"broken: {truth.say}")
            await self._phase("watch", self._watch(broke_at))
            if self.result.run_result == RunState.OK:
                await self._phase("resume", self._resumed())
            self.result.moments = self._moments(broke_at)
        return self.result

    async def _park(self) -> None:
        everywhere = ",".join(self.lab.nodes)
        settings = self.controller.settings
        found = await warm(settings, everywhere, self.job.name, LEASE_S)
        parked = [row for row in found.rows if row["parked_for"] == self.job.name]
        self.say(f"parked: a process for each rank on {len(parked)} of {len(self.lab.nodes)} nodes")

    @asynccontextmanager
    async def _watcher(self) -> AsyncIterator[None]:
        """A watcher as a process of its own, looking at every node; it ends with the demo."""
        state_dir = self.controller.state_dir
        policy, log = state_dir / "watch.yaml", state_dir / "watch.log"
        policy.write_text(POLICY)
        policy.chmod(0o600)
        argv = own_program(
            "brctl", "--config", str(self.lab.paths.config), "watch", "--job", self.job.name,
            "--mode", "act", "--policy", str(policy),
        )  # fmt: skip
        with log.open("wb") as stream:
            watcher = await asyncio.create_subprocess_exec(*argv, stdout=stream, stderr=stream)
        try:
            await self._until(lambda: self._talks(watcher, log), "the watcher's first look")
            self.say(f"watching: {len(self.job.nodes)} nodes, act; policy {policy}")
            yield
        finally:
            if watcher.returncode is None:
                await _end(watcher)

    def _talks(self, watcher: Process, log: Path) -> bool:
        if watcher.returncode is not None:
            said = log.read_text(errors="replace").strip()
            raise UnavailableError(f"the watcher ended: {said[-400:]}")
        status = self._folder.snapshot(0).status
        return bool(status) and status.get("talking") == status.get("nodes")

    @property
    def _folder(self) -> WatchFolder:
        return WatchFolder(self.controller.state_dir, self.controller.settings.context)

    async def _watch(self, broke_at: datetime) -> None:
        """Tell what the watcher writes, until a run of its own has ended well."""
        told: set[int] = set()
        deadline = asyncio.get_running_loop().time() + PHASE_TIMEOUT_S
        while asyncio.get_running_loop().time() < deadline:
            for record in self._records(broke_at):
                if record.seq not in told and record.kind in TOLD:
                    told.add(record.seq)
                    self.say(f"watcher: {record_line(record)}")
            run = self._newest_run()
            if run is not None and run.state is RunState.OK:
                self._believe(run)
                return
            await asyncio.sleep(0.2)
        self.say(f"no run of the watcher ended well within {PHASE_TIMEOUT_S:.0f} s")

    def _believe(self, run: Run) -> None:
        verdict = verdict_store.load(self.controller.state_dir, run.verdict_id).verdict
        self.result.verdict, self.result.run = verdict, run.name
        self.result.old_step = verdict.job_step or 0
        self._read_run(run.run_dir)

    def _records(self, broke_at: datetime) -> Sequence[WatchRecord]:
        return [r for r in self._folder.records(RECORDS) if r.at >= broke_at]

    def _newest_run(self) -> Run | None:
        return next(iter(reversed(sound_runs(self.controller.state_dir))), None)

    def _moments(self, broke_at: datetime) -> tuple[DemoMoment, ...]:
        run = self._newest_run()
        steps_at = [at for row in self._rows() if isinstance(at := row.get("at"), int | float)]
        return moments(broke_at, self._records(broke_at), run.events if run else (), steps_at)


def record_line(record: WatchRecord) -> str:
    """One line of the watcher's record, for a person."""
    about = record.text("subject") or record.text("verdict")
    text = record.text("text") or record.text("title") or record.text("held") or record.text("mode")
    return " ".join(filter(None, (record.kind, about, text)))


def moments(
    broke_at: datetime,
    records: Iterable[WatchRecord],
    events: Iterable[Event],
    steps_at: Iterable[float],
) -> tuple[DemoMoment, ...]:
    """When each thing came first after the fault, in its order; what never came is left out.

    Args:
        broke_at: When the fault was put in.
        records: Of the watcher.
        events: Of the run that it started.
        steps_at: When each step of training ended, in seconds of the wall clock.
    """
    fault_s = broke_at.timestamp()
    came: list[tuple[str, float]] = [("fault", fault_s)]
    for kind in TOLD:
        came += [(kind, r.at.timestamp()) for r in records if r.kind == kind][:1]
    told = list(events)
    for what, kind, step in (
        ("fix started", EventType.RUN_STARTED, None),
        ("job stopped", EventType.STEP_RESULT, "stop"),
        ("ranks started", EventType.STEP_RESULT, "restart"),
    ):
        found = [e for e in told if e.type is kind and e.fields.get("step") == step]
        came += [(what, e.at.timestamp()) for e in found if e.fields.get("ok", True)][:1]
    restarted_s = dict(came).get("ranks started")
    if restarted_s is not None:
        came += [("new step", at) for at in steps_at if at > restarted_s][:1]
    return tuple(DemoMoment(what, round(at - fault_s, 2)) for what, at in came)


async def _end(watcher: Process) -> None:
    """Whatever holds it up: what may act outlives nobody who asked for a demo."""
    watcher.terminate()
    try:
        await asyncio.wait_for(watcher.wait(), ENDS_WITHIN_S)
    except TimeoutError:
        watcher.kill()
        await watcher.wait()
