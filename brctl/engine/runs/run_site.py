"""The world as one run's verbs see it: the ground, with the run's name on everything it leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from brctl.backends.contract import Backend
from brctl.engine.incidents.notify_runs import run_facts
from brctl.engine.incidents.timeline import incident_of_run
from brctl.engine.runs.context import Ground
from brctl.journal.code_ledger import CodeLedger
from brctl.library.config import SshSettings
from brctl.model.answer import Answer, Command
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.localisation import Bisection, GroupResult
from brctl.model.sweeps.burnin import Burnin
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth
from brctl.notify.notifier import Notifier
from brctl.view.incident import Incident
from brctl.view.notices.notice import RunFacts


class RunSite:
    """See `actions.contract.Site`."""

    def __init__(self, ground: Ground, run: str, run_dir: Path) -> None:
        self._ground = ground
        self.run = run
        self.run_dir = run_dir
        self.ending = ("running", "")

    @property
    def backend(self) -> Backend:
        return self._ground.backend

    @property
    def inventory(self) -> Inventory:
        return self._ground.inventory

    @property
    def notifier(self) -> Notifier:
        return self._ground.notifier

    @property
    def ssh(self) -> SshSettings:
        return self._ground.ssh

    def facts(self) -> RunFacts:
        return replace(run_facts(self._ground, self.run_dir), ending=self.ending)

    def incident(self) -> Incident:
        return incident_of_run(self._ground.state_dir, self.facts())

    def standbys(self, job: str = "") -> tuple[str, ...]:
        return self._ground.standbys(job)

    def now(self) -> datetime:
        return self._ground.now()

    async def pause(self, seconds: float) -> None:
        await self._ground.pause(seconds)

    async def job(self, name: str) -> Job:
        return await self._ground.job(name)

    async def jobs(self) -> Sequence[Job]:
        return await self._ground.jobs()

    def code_ledger(self, job: str) -> CodeLedger:
        return self._ground.code_ledger(job)

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        return await self._ground.examine(nodes, level)

    async def bisect(
        self, nodes: Sequence[str], size_bytes: int, reps: int, budget_s: float
    ) -> Bisection:
        return await self._ground.bisect(nodes, size_bytes, reps, budget_s)

    def replay_groups(self, job: Job) -> Sequence[Sequence[str]]:
        return self._ground.replay_groups(job)

    async def replay(self, job: Job, deadline_s: float) -> Bisection:
        return await self._ground.replay(job, deadline_s)

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        return await self._ground.ask(node, check, job, parameters)

    async def select(self, text: str) -> tuple[str, ...]:
        return await self._ground.select(text)

    async def enlist_standby(self, node: str) -> str:
        return await self._ground.enlist_standby(node)

    async def dismiss_standbys(self, nodes: Sequence[str]) -> None:
        await self._ground.dismiss_standbys(nodes)

    async def run_program(
        self, node: str, argv: Sequence[str], deadline_s: float, *, root: bool = False
    ) -> Answer:
        return await self._ground.run_program(node, argv, deadline_s, root=root)

    async def burn_in(
        self, nodes: Sequence[str], level: int, duration_s: float, stop_on: Sequence[str]
    ) -> Burnin:
        return await self._ground.burn_in(nodes, level, duration_s, stop_on)

    async def test_groups(
        self, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
    ) -> Sequence[GroupResult]:
        return await self._ground.test_groups(groups, op, size_bytes, reps)

    async def dump_stacks(self, job: Job, folder: Path, nodes: Sequence[str]) -> tuple[int, ...]:
        return await self._ground.dump_stacks(job, folder, nodes)

    async def progress(self, job: Job) -> JobStatus:
        return await self._ground.progress(job)

    async def command(self, node: str, command: Command) -> Answer:
        return await self._ground.command(node, command)
