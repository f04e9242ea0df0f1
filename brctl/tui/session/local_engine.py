"""The engine behind the terminal: one controller, opened at the first question and kept."""

import asyncio
import importlib
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from brctl.engine.controller.people import groups_of, person
from brctl.engine.incidents import verdict_store
from brctl.journal.store import find_run
from brctl.library.config import Settings
from brctl.library.guards import load_guards
from brctl.library.own_program import own_program
from brctl.model.nodeset import fold
from brctl.model.sweeps.sweep import NodeHealth
from brctl.playbook.guard_facts import GuardFacts, Taken
from brctl.playbook.guards import BUILT_IN, check_guards
from brctl.tui.session.engine_client import JobSeen, Proposal, SchedulerState

if TYPE_CHECKING:
    from brctl.actions.context import RunContext
    from brctl.backends.contract import Cordon
    from brctl.engine.controller.wiring import Controller
    from brctl.engine.runs.plan import Prepared
    from brctl.engine.runs.run_files import RunRequest
    from brctl.model.jobs.job import Job

_HEAVY = (
    "brctl.engine.controller.wiring",
    "brctl.engine.application.fix",
    "brctl.engine.application.sweep",
    "brctl.engine.application.diagnose",
    "brctl.engine.job.looks",
)
"""SSH libraries take a third of a second to import; a thread does it while the screen is up."""


class ContextSource(Protocol):
    """Where the engine finds its context, what runs see of it, and the program they are."""

    @property
    def program(self) -> Sequence[str]: ...

    def open(self) -> AbstractAsyncContextManager["Controller"]: ...

    def run_context(self, controller: "Controller") -> "RunContext": ...


class ConfiguredContext:
    """The context that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def program(self) -> Sequence[str]:
        from brctl.engine.runs.remediate import RUN_PROGRAM

        return RUN_PROGRAM

    def open(self) -> AbstractAsyncContextManager["Controller"]:
        from brctl.engine.controller.wiring import open_controller

        return open_controller(self._settings)

    def run_context(self, controller: "Controller") -> "RunContext":
        from brctl.engine.runs.context import run_context

        return run_context(controller)


class LocalEngine:
    """Every call here is one the command line makes too.

    Args:
        say: Told what a person should know beside the answer; the screen shows it.
        cluster: What it works on; None for the context of the settings.
    """

    def __init__(
        self,
        settings: Settings,
        say: Callable[[str], None],
        cluster: ContextSource | None = None,
    ) -> None:
        self._settings = settings
        self.say = say
        self._cluster = cluster or ConfiguredContext(settings)
        self._stack = AsyncExitStack()
        self._controller: Controller | None = None
        self._opening = asyncio.Lock()
        self._prepared: dict[str, Prepared] = {}

    async def _open(self) -> "Controller":
        async with self._opening:
            if self._controller is None:
                for name in _HEAVY:
                    await asyncio.to_thread(importlib.import_module, name)
                self._controller = await self._stack.enter_async_context(self._cluster.open())
            return self._controller

    async def close(self) -> None:
        await self._stack.aclose()

    async def _open_placed(self) -> "Controller":
        """The context with its jobs where they run now: a swap may have moved them since."""
        from brctl.engine.controller.wiring import with_jobs_placed

        self._controller = await with_jobs_placed(await self._open())
        return self._controller

    async def placement(self) -> SchedulerState:
        controller = await self._open_placed()
        cordons = await controller.backend.cordons()
        jobs = tuple(controller.jobs.values())
        cordoned = {name: (cordon.owner, cordon.reason) for name, cordon in cordons.items()}
        return SchedulerState(cordoned, jobs, self._budget(controller, cordons))

    async def look_at_jobs(self) -> tuple[JobSeen, ...]:
        controller = await self._open_placed()
        from brctl.engine.job.looks import ask_job, fresh_look, look_before

        async def look_at(job: "Job") -> JobSeen:
            before = look_before(controller, job)
            status = await ask_job(controller, job, before)
            return JobSeen(fresh_look(controller, status, before), status)

        return tuple(await asyncio.gather(*map(look_at, controller.jobs.values())))

    def _budget(self, controller: "Controller", cordons: Mapping[str, "Cordon"]) -> str:
        """What the eviction guard says to taking no node now: its own arithmetic, nobody else's."""
        now_at = controller.now()
        facts = GuardFacts(
            now_at=now_at,
            run="",
            fleet=tuple(n.name for n in controller.inventory.nodes.values() if n.gpus != 0),
            taken=tuple(Taken(c.node, c.owner, c.at or now_at) for c in cordons.values()),
        )
        site = load_guards(self._settings.guard_files).guards
        lines = [spec for spec in site if spec.kind == BUILT_IN.kind] or [BUILT_IN]
        return "; ".join(decision.sentence for decision in check_guards(lines, facts))

    async def sweep(self, names: Sequence[str], on_node: Callable[[NodeHealth], None]) -> str:
        """One sweep at a time in a context: while cron's runs, this one says so."""
        controller = await self._open()
        from brctl.engine.application.sweep import SweepRequest, sweep
        from brctl.engine.sweeps.run_checks import Question

        job = next(iter(controller.jobs), None)
        request = SweepRequest(Question(), include=fold(names), job=job, lock="fail")
        done = await sweep(self._settings, self._lent, request, self.say, lambda _: on_node)
        return done.sweep.id if done else ""

    async def diagnose(self, names: Sequence[str], job: str) -> tuple[str, ...]:
        controller = await self._open_placed()
        from brctl.engine.application.diagnose import diagnose, scope_of

        scope = await scope_of(controller, job or None, fold(names) if names and not job else None)
        return tuple(v.id for v in (await diagnose(controller, scope, self.say)).verdicts)

    async def propose(self, verdict_id: str) -> Proposal:
        context = await self._run_context()
        from brctl.engine.application.estimate import with_estimate
        from brctl.engine.application.fix import choose_fix, plan_fix

        stored = verdict_store.load(self._settings.state_dir, verdict_id)
        fix = await plan_fix(context, choose_fix(self._settings, stored, context.clock.now()))
        prepared = await with_estimate(context, fix.prepared, stored.verdict)
        self._prepared[prepared.plan.digest] = prepared
        return Proposal(prepared.plan, fix.words, fix.command)

    async def start(self, proposal: Proposal) -> str:
        context = await self._run_context()
        from brctl.engine.application.fix import start_planned

        prepared = self._prepared.pop(proposal.plan.digest)
        request = self._request(proposal.words)
        run_dir = await start_planned(context, self._settings, prepared, request, self._program)
        return run_dir.name

    def why_not_approve(self, run: str) -> str:
        from brctl.engine.runs.remediate import why_not_answer

        run_dir = find_run(self._settings.state_dir, run)
        return why_not_answer(run_dir, person(), groups_of) or ""

    async def approve(self, run: str, typed: str) -> None:
        await self._answer(run, yes=True, typed=typed)

    async def deny(self, run: str) -> None:
        await self._answer(run, yes=False)

    async def _answer(self, run: str, *, yes: bool, typed: str | None = None) -> None:
        context = await self._run_context()
        from brctl.engine.controller.readonly import refuse_readonly
        from brctl.engine.runs.remediate import answer, resume

        action = f"{'approve' if yes else 'deny'} {run}"
        refuse_readonly(self._settings, action=action)
        run_dir = find_run(self._settings.state_dir, run)
        answer(context, run_dir, person(), yes=yes, typed=typed)
        await resume(run_dir, self._request(), self._program)

    async def rollback(self, run: str) -> None:
        from brctl.engine.controller.readonly import refuse_readonly
        from brctl.engine.runs.remediate import roll_back

        refuse_readonly(self._settings, action=f"rollback {run}")
        run_dir = find_run(self._settings.state_dir, run)
        await roll_back(run_dir, self._request(), self._program)

    def _request(self, typed: str | None = None) -> "RunRequest":
        from brctl.engine.application.runs import request_for

        return request_for(self._settings, typed=typed)

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator["Controller"]:
        """The open context; it stays open."""
        yield await self._open_placed()

    async def _run_context(self) -> "RunContext":
        controller = await self._open()
        return self._cluster.run_context(controller)

    @property
    def _program(self) -> Sequence[str]:
        return self._cluster.program

    async def in_terminal(self, words: Sequence[str]) -> int:
        argv = own_program("brctl", *words, "--context", self._settings.context)
        if self._settings.config_file:
            argv += ["--config", str(self._settings.config_file)]
        print(f"$ brctl {shlex.join(words)}", flush=True)  # noqa: T201
        process = await asyncio.create_subprocess_exec(*argv)
        code = await process.wait()
        print(f"\n[exit {code}] press enter to go back", flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.readline)
        return code
