"""The part of the world a run needs, as one narrow door; fakes stand behind it in tests."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from brctl.backends.contract import Backend
from brctl.engine.controller.people import groups_of
from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import World
from brctl.engine.incidents.verdict_store import load
from brctl.engine.job.diagnose import still_true
from brctl.engine.job.stacks import dump_stacks
from brctl.engine.search.bisect import BisectOptions
from brctl.engine.search.group_search import search_nodes, test_groups
from brctl.engine.search.replay_phases import phases_of, replay_job
from brctl.engine.standby.care import warm_standbys
from brctl.engine.standby.pool import Pool, load_pool, save_pool
from brctl.engine.standby.pool import add as add_standbys
from brctl.engine.standby.pool import remove as remove_standbys
from brctl.engine.sweeps.burnin import BurninPlan, burn_in
from brctl.engine.sweeps.node_states import ailing_nodes
from brctl.engine.sweeps.pair_check import askable, probed, with_pairs
from brctl.engine.sweeps.run_checks import Question, judge
from brctl.evidence.job import RANKS_CHECK, read_job
from brctl.journal.code_ledger import CodeLedger, ledger_dir, with_code
from brctl.library.calendars import load_calendar
from brctl.library.config import SshSettings
from brctl.library.guards import SiteGuards, load_guards
from brctl.library.parameters import fill_parameters
from brctl.model.answer import Answer, Command, Outcome
from brctl.model.errors import UsageError
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.localisation import Bisection, GroupResult
from brctl.model.runs.calendar import Calendar
from brctl.model.sweeps.burnin import Burnin
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth
from brctl.model.units import parse_rfc3339
from brctl.model.verdict import Verdict
from brctl.notify.notifier import Notifier
from brctl.sweep.stream import sweep


class Ground(Protocol):
    """What `actions.contract.Site` offers, before it is bound to one run, and what guards ask."""

    @property
    def state_dir(self) -> Path: ...

    @property
    def guards(self) -> SiteGuards: ...

    @property
    def backend(self) -> Backend: ...

    @property
    def inventory(self) -> Inventory: ...

    @property
    def context(self) -> str: ...

    @property
    def notifier(self) -> Notifier: ...

    @property
    def ssh(self) -> SshSettings: ...

    def standbys(self, job: str = "") -> tuple[str, ...]: ...

    def warmed_at(self) -> Mapping[str, datetime]: ...

    def now(self) -> datetime: ...

    async def pause(self, seconds: float) -> None: ...

    async def job(self, name: str) -> Job: ...

    async def jobs(self) -> Sequence[Job]: ...

    def code_ledger(self, job: str) -> CodeLedger: ...

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]: ...

    async def bisect(
        self, nodes: Sequence[str], size_bytes: int, reps: int, budget_s: float
    ) -> Bisection: ...

    def replay_groups(self, job: Job) -> Sequence[Sequence[str]]: ...

    async def replay(self, job: Job, deadline_s: float) -> Bisection: ...

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport: ...

    async def progress(self, job: Job) -> JobStatus: ...

    async def select(self, text: str) -> tuple[str, ...]: ...

    async def enlist_standby(self, node: str) -> str: ...

    async def dismiss_standbys(self, nodes: Sequence[str]) -> None: ...

    async def run_program(
        self, node: str, argv: Sequence[str], deadline_s: float, *, root: bool = False
    ) -> Answer: ...

    async def burn_in(
        self, nodes: Sequence[str], level: int, duration_s: float, stop_on: Sequence[str]
    ) -> Burnin: ...

    async def test_groups(
        self, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
    ) -> Sequence[GroupResult]: ...

    async def dump_stacks(
        self, job: Job, folder: Path, nodes: Sequence[str]
    ) -> tuple[int, ...]: ...

    async def command(self, node: str, command: Command) -> Answer: ...

    def calendar(self, name: str) -> Calendar: ...

    def groups_of(self, person: str) -> Collection[str]: ...

    def ailing(self) -> tuple[frozenset[str], frozenset[str]]:
        """Nodes the newest sweep found sick, and those nothing fresh is known of."""
        ...

    def verdict(self, verdict_id: str) -> Verdict: ...

    async def still_true(self, verdict: Verdict) -> bool | None: ...


class WorldGround:
    """The opened context behind that door."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.guards = load_guards(world.settings.guard_files)
        self.context = world.settings.context
        self.ssh = world.settings.ssh
        self.notifier = Notifier(world.settings.notify, world.state_dir, world.now)

    @property
    def state_dir(self) -> Path:
        return self._world.state_dir

    @property
    def backend(self) -> Backend:
        return self._world.backend

    @property
    def inventory(self) -> Inventory:
        return self._world.inventory

    def standbys(self, job: str = "") -> tuple[str, ...]:
        return self._pool().best_first(self.inventory, job)

    def warmed_at(self) -> Mapping[str, datetime]:
        known = self._pool().known.values()
        return {s.node: parse_rfc3339(s.warmed_at) for s in known if s.warmed_at}

    def _pool(self) -> Pool:
        return load_pool(self.state_dir, self._world.settings.context)

    def now(self) -> datetime:
        return self._world.now()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def job(self, name: str) -> Job:
        """The job where the backend says it is now, with the code its ledger says it runs now."""
        return await self._placed(self._world.job(name))

    async def jobs(self) -> Sequence[Job]:
        return [await self._placed(job) for job in self._world.jobs.values()]

    async def _placed(self, job: Job) -> Job:
        return with_code(await self.backend.place(job), self.code_ledger(job.name))

    def code_ledger(self, job: str) -> CodeLedger:
        return CodeLedger(ledger_dir(self.state_dir, self._world.settings.context, job))

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        """Checks that need a job are left out: a standby has none."""
        checks = {
            name: check
            for name, check in self._world.checks.items()
            if check.level <= level and "job" not in check.needs
        }
        checks = askable(checks, nodes)
        reports = await self._sweep(nodes, tuple(probed(checks)), None, {})
        answers = await with_pairs(self._world, reports, checks)
        return [judge(report, checks, None) for report in answers]

    async def bisect(
        self, nodes: Sequence[str], size_bytes: int, reps: int, budget_s: float
    ) -> Bisection:
        options = BisectOptions("all_reduce", size_bytes, budget_s)
        return await search_nodes(self._world, nodes, options, reps)

    def replay_groups(self, job: Job) -> Sequence[Sequence[str]]:
        return [[job.nodes[i] for i in group] for group in phases_of(job).horizontal()]

    async def replay(self, job: Job, deadline_s: float) -> Bisection:
        return await replay_job(self._world, job, deadline_s)

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        if node not in self.inventory.nodes:
            return NodeReport(node, Outcome.UNREACHABLE, detail="not in the inventory")
        return (await self._sweep([node], (check,), job, parameters))[0]

    async def progress(self, job: Job) -> JobStatus:
        return read_job(job, await self._sweep(job.nodes, (RANKS_CHECK,), job, {}))

    async def select(self, text: str) -> tuple[str, ...]:
        return await select_nodes(self._world, text)

    async def enlist_standby(self, node: str) -> str:
        busy = {name: job.name for job in await self.jobs() for name in job.nodes}
        pool = await warm_standbys(self._world, self._pool(), [node])
        note = "" if pool.of(node).warmed_at else pool.of(node).note or "could not be warmed"
        # Read again: somebody may have changed the pool while the node was loading.
        pool = self._pool().with_known([pool.of(node)])
        save_pool(self.state_dir, self._world.settings.context,
                  pool if note else add_standbys(pool, self.inventory, [node], busy))  # fmt: skip
        return note

    async def dismiss_standbys(self, nodes: Sequence[str]) -> None:
        pool = remove_standbys(self._pool(), nodes)
        save_pool(self.state_dir, self._world.settings.context, pool)

    async def run_program(
        self, node: str, argv: Sequence[str], deadline_s: float, *, root: bool = False
    ) -> Answer:
        prefix = self._world.settings.ssh.sudo.split() if root else []
        return await self.command(node, Command((*prefix, *argv), deadline_s=deadline_s))

    async def burn_in(
        self, nodes: Sequence[str], level: int, duration_s: float, stop_on: Sequence[str]
    ) -> Burnin:
        plan = BurninPlan(tuple(nodes), level, duration_s, tuple(stop_on))
        return await burn_in(self._world, plan)

    async def test_groups(
        self, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
    ) -> Sequence[GroupResult]:
        return await test_groups(self._world, groups, op, size_bytes, reps)

    async def dump_stacks(self, job: Job, folder: Path, nodes: Sequence[str]) -> tuple[int, ...]:
        return await dump_stacks(self._world, job, folder, nodes)

    def groups_of(self, person: str) -> Collection[str]:
        return groups_of(person)

    def calendar(self, name: str) -> Calendar:
        return load_calendar(self._world.settings.calendars, name, self.now())

    def ailing(self) -> tuple[frozenset[str], frozenset[str]]:
        return ailing_nodes(self.state_dir, self.inventory.nodes, self.now())

    async def command(self, node: str, command: Command) -> Answer:
        return await self._world.transport.run(self.inventory.nodes[node], command)

    def verdict(self, verdict_id: str) -> Verdict:
        return load(self.state_dir, verdict_id).verdict

    async def still_true(self, verdict: Verdict) -> bool | None:
        return await still_true(self._world, verdict)

    async def _sweep(
        self,
        nodes: Sequence[str],
        names: Sequence[str],
        job: Job | None,
        parameters: Mapping[str, object],
    ) -> list[NodeReport]:
        missing = [name for name in names if name not in self._world.checks]
        if missing:
            raise UsageError(f"no check {missing[0]!r} is installed")
        question = Question(job=job)
        checks = {name: self._world.checks[name] for name in names}
        stream = sweep(
            self._world.transport,
            self.inventory.pick(nodes),
            checks,
            lambda node, check: {**fill_parameters(check, node, question.job), **parameters},
            limit=self._world.settings.ssh.fanout,
            sudo=self._world.settings.ssh.sudo,
            now=self._world.now,
        )
        return [report async for report in stream]
