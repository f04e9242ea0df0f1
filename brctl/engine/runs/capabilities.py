"""What a run may use of an opened context: the capabilities of `actions.context`, for real."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from brctl.engine.controller.people import groups_of
from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import load
from brctl.engine.job.diagnose import diagnose_once, still_true
from brctl.engine.job.looks import beside_last_look, look_before
from brctl.engine.job.pace_store import measured_price
from brctl.engine.job.rank_dumps import dump_ranks
from brctl.engine.job.read_ranks import read_ranks
from brctl.engine.search.bisect import BisectOptions
from brctl.engine.search.corruption import locate_corruption
from brctl.engine.search.group_search import search_nodes, test_groups
from brctl.engine.search.replay_phases import ReplayOrder, phases_of, replay_job
from brctl.engine.standby.care import warm_standbys
from brctl.engine.standby.pool import Pool, add, daily_rate, remove
from brctl.engine.standby.pool_file import change_pool, usable_pool
from brctl.engine.sweeps.burnin import BurninPlan, burn_in, convicted_at
from brctl.engine.sweeps.burnin_store import load_all
from brctl.engine.sweeps.node_states import ailing_nodes, node_health
from brctl.engine.sweeps.pair_check import askable, probed, with_pairs
from brctl.engine.sweeps.run_checks import assess_node
from brctl.fanout.contract import Remembering
from brctl.journal.code_ledger import CodeLedger, ledger_dir, with_code
from brctl.journal.wanted_order import WantedOrderFile
from brctl.library.calendars import load_calendar
from brctl.library.parameters import fill_parameters
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UsageError
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.rank_dumps import RankDumps
from brctl.model.localisation import Bisection, GroupResult
from brctl.model.runs.calendar import Calendar
from brctl.model.sweeps.burnin import Burnin
from brctl.model.sweeps.corruption import CorruptionOrder, CorruptionSearch
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth
from brctl.model.units import parse_rfc3339
from brctl.model.verdict import Verdict
from brctl.playbook.placement.price import PlacePrice
from brctl.playbook.spares import expected_uptime_s
from brctl.sweep.stream import sweep


class SystemClock:
    """See `Clock`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def now(self) -> datetime:
        return self._controller.now()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FleetNodes:
    """See `NodeAccess`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def command(self, node: str, command: Command) -> CommandResult:
        return await self._controller.transport.run(self._controller.inventory.nodes[node], command)

    async def run_program(
        self, node: str, argv: Sequence[str], deadline_s: float, *, root: bool = False
    ) -> CommandResult:
        prefix = self._controller.settings.ssh.sudo.split() if root else []
        return await self.command(node, Command((*prefix, *argv), deadline_s=deadline_s))

    async def select(self, text: str) -> tuple[str, ...]:
        return await select_nodes(self._controller, text)

    def wait_less_for_silent(self, nodes: Sequence[str]) -> None:
        controller = self._controller
        if not isinstance(controller.transport, Remembering):
            return
        for node in nodes:
            answer = node_health(controller.state_dir, node)
            report = answer.report if answer else None
            if report and report.outcome is Outcome.CONNECT_TIMED_OUT and report.received_at:
                ago_s = (controller.now() - report.received_at).total_seconds()
                controller.transport.was_silent(node, asyncio.get_running_loop().time() - ago_s)


class FleetSweeps:
    """See `Sweeps`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        """Checks that need a job are left out: a standby has none."""
        checks = {
            name: check
            for name, check in self._controller.checks.items()
            if check.level <= level and "job" not in check.needs
        }
        checks = askable(checks, nodes)
        reports = await self.reports(nodes, tuple(probed(checks)), None, {})
        answers = await with_pairs(self._controller, reports, checks)
        return [assess_node(report, checks, None) for report in answers]

    async def record(
        self, nodes: Sequence[str], job: Job | None
    ) -> tuple[Sequence[NodeHealth], bytes]:
        # Nobody but an evidence.capture needs what reads and packs archives.
        from brctl.engine.recording.export import look_file
        from brctl.engine.recording.recorder import Recorder

        recorder = Recorder(self._controller)
        found = await diagnose_once(recorder.controller, job, nodes)
        look = recorder.look(found, job, tuple(nodes), found.sweep.level)
        return found.sweep.nodes, look_file(look, recorder)

    async def recording_of(self, verdict: str) -> bytes | None:
        # Nobody but an evidence.capture needs what reads and packs archives.
        from brctl.engine.recording.export import file_of_verdict

        # Hundreds of MB may be packed, and no step beside this one must wait for it.
        return await asyncio.to_thread(file_of_verdict, self._controller.state_dir, verdict)

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        if node not in self._controller.inventory.nodes:
            return NodeReport(node, Outcome.UNREACHABLE, detail="not in the inventory")
        return (await self.reports([node], (check,), job, parameters))[0]

    async def burn_in(
        self, nodes: Sequence[str], level: int, duration_s: float, stop_on: Sequence[str]
    ) -> Burnin:
        plan = BurninPlan(tuple(nodes), level, duration_s, tuple(stop_on))
        return await burn_in(self._controller, plan)

    def computed_wrongly(self) -> Mapping[str, datetime]:
        return convicted_at(load_all(self._controller.state_dir))

    def ailing(self) -> tuple[frozenset[str], frozenset[str]]:
        controller = self._controller
        return ailing_nodes(controller.state_dir, controller.inventory.nodes, controller.now())

    async def reports(
        self,
        nodes: Sequence[str],
        names: Sequence[str],
        job: Job | None,
        parameters: Mapping[str, object],
    ) -> list[NodeReport]:
        """What nodes answer to some checks, asked with the job's parameters and these."""
        missing = [name for name in names if name not in self._controller.checks]
        if missing:
            raise UsageError(f"no check {missing[0]!r} is installed")
        stream = sweep(
            self._controller.transport,
            self._controller.inventory.pick(nodes),
            {name: self._controller.checks[name] for name in names},
            lambda node, check: {**fill_parameters(check, node, job), **parameters},
            limit=self._controller.settings.ssh.fanout,
            root=self._controller.settings.ssh.root,
            now=self._controller.now,
        )
        return [report async for report in stream]


class PlacedJobs:
    """See `Jobs`."""

    def __init__(self, controller: Controller, sweeps: FleetSweeps) -> None:
        self._controller = controller
        self._sweeps = sweeps

    async def get(self, name: str) -> Job:
        return await self._placed(self._controller.job(name))

    async def all(self) -> Sequence[Job]:
        return [await self._placed(job) for job in self._controller.jobs.values()]

    async def _placed(self, job: Job) -> Job:
        return with_code(await self._controller.backend.place(job), self.code_ledger(job.name))

    def code_ledger(self, job: str) -> CodeLedger:
        return CodeLedger(
            ledger_dir(self._controller.state_dir, self._controller.settings.context, job)
        )

    def wanted_order(self, job: str) -> WantedOrderFile:
        settings = self._controller.settings
        return WantedOrderFile(self._controller.state_dir, settings.context, job)

    async def progress(self, job: Job) -> JobStatus:
        reports = await self._sweeps.reports(job.nodes, (RANKS_CHECK,), job, {})
        status = await read_ranks(self._controller.backend, job, reports)
        return beside_last_look(self._controller, status, look_before(self._controller, job))

    async def dump_ranks(
        self, job: Job, folder: Path, nodes: Sequence[str], within_s: float | None
    ) -> RankDumps:
        return await dump_ranks(self._controller, job, folder, nodes, within_s)


class GroupSearch:
    """See `Search`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def bisect(
        self, nodes: Sequence[str], size_bytes: int, reps: int, budget_s: float
    ) -> Bisection:
        options = BisectOptions("all_reduce", size_bytes, budget_s)
        return await search_nodes(self._controller, nodes, options, reps)

    def replay_groups(self, job: Job) -> Sequence[Sequence[str]]:
        return [[job.nodes[i] for i in group] for group in phases_of(job).horizontal()]

    async def replay(self, job: Job, deadline_s: float) -> Bisection:
        return await replay_job(self._controller, job, ReplayOrder(deadline_s))

    async def locate_corruption(
        self, job: Job, order: CorruptionOrder, tell: Callable[[str], None]
    ) -> CorruptionSearch:
        return await locate_corruption(self._controller, job, order, tell)

    async def test_groups(
        self, groups: Sequence[tuple[str, ...]], op: str, size_bytes: int, reps: int
    ) -> Sequence[GroupResult]:
        return await test_groups(self._controller, groups, op, size_bytes, reps)


class StandbyPool:
    """See `Standbys`."""

    def __init__(self, controller: Controller, jobs: PlacedJobs) -> None:
        self._controller = controller
        self._jobs = jobs

    def best_first(self, job: str = "") -> tuple[str, ...]:
        return self._load().best_first(self._controller.inventory, job)

    def start_s(self, job: str) -> Mapping[str, float]:
        return self._load().start_s(self._controller.inventory, job, self._controller.now())

    def place_price(self) -> PlacePrice:
        return measured_price(self._controller.state_dir, self._controller.settings.context)

    def uptime_s(self, machines: int) -> float:
        rate = daily_rate(self._controller.state_dir, machines, self._controller.now())
        return expected_uptime_s(machines, rate.daily)

    def warmed_at(self) -> Mapping[str, datetime]:
        known = self._load().known.values()
        return {s.node: parse_rfc3339(s.warmed_at) for s in known if s.warmed_at}

    async def enlist(self, node: str) -> str:
        busy = {name: job.name for job in await self._jobs.all() for name in job.nodes}
        warmed = (await warm_standbys(self._controller, self._load(), [node])).of(node)
        note = "" if warmed.warmed_at else warmed.note or "could not be warmed"

        def change(pool: Pool) -> Pool:
            pool = pool.with_known([warmed])
            return pool if note else add(pool, self._controller.inventory, [node], busy)

        self._change(change)
        return note

    async def dismiss(self, nodes: Sequence[str]) -> None:
        self._change(lambda pool: remove(pool, nodes))

    def _load(self) -> Pool:
        return usable_pool(self._controller.state_dir, self._controller.settings.context)

    def _change(self, change: Callable[[Pool], Pool]) -> None:
        change_pool(self._controller.state_dir, self._controller.settings.context, change)


class StoredVerdicts:
    """See `Verdicts`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def get(self, verdict_id: str) -> Verdict:
        return load(self._controller.state_dir, verdict_id).verdict

    async def still_true(self, verdict: Verdict) -> bool | None:
        return await still_true(self._controller, verdict)


class UnixPeople:
    """See `People`."""

    def groups_of(self, person: str) -> Collection[str]:
        return groups_of(person)


class SiteCalendars:
    """See `Calendars`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def read(self, name: str) -> Calendar:
        return load_calendar(self._controller.settings.calendars, name, self._controller.now())
