"""The engine behind the terminal: one open world, opened at the first question and kept."""

import asyncio
import importlib
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from brctl.engine.controller.people import person
from brctl.engine.incidents import verdict_store
from brctl.journal.store import find_run
from brctl.library.config import Settings
from brctl.library.guards import load_guards
from brctl.library.own_program import own_program
from brctl.library.playbooks import load_playbooks, pick_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError
from brctl.model.sweeps.sweep import NodeHealth
from brctl.playbook.approvals import confirmation_text
from brctl.playbook.guard_facts import GuardFacts, Taken
from brctl.playbook.guards import BUILT_IN, check_guards
from brctl.playbook.proposals import why_not
from brctl.tui.session.engine_client import Placement, Proposal

if TYPE_CHECKING:
    from brctl.backends.contract import Cordon
    from brctl.engine.controller.wiring import World
    from brctl.engine.runs.plan import Prepared
    from brctl.engine.runs.run_files import RunRequest

_HEAVY = (
    "brctl.engine.controller.wiring",
    "brctl.engine.runs.remediate",
    "brctl.engine.job.diagnose",
)
"""SSH libraries take a third of a second to import; a thread does it while the screen is up."""


class LocalEngine:
    """Every call here is one the command line makes too."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._world: World | None = None
        self._opening = asyncio.Lock()
        self._prepared: dict[str, Prepared] = {}

    async def _open(self) -> "World":
        async with self._opening:
            if self._world is None:
                for name in _HEAVY:
                    await asyncio.to_thread(importlib.import_module, name)
                from brctl.engine.controller.wiring import open_world

                self._world = await self._stack.enter_async_context(open_world(self._settings))
            return self._world

    async def close(self) -> None:
        await self._stack.aclose()

    async def placement(self) -> Placement:
        world = await self._open()
        cordons = await world.backend.cordons()
        jobs = [await world.backend.place(job) for job in world.jobs.values()]
        told = {name: (cordon.owner, cordon.reason) for name, cordon in cordons.items()}
        return Placement(told, tuple(jobs), self._budget(world, cordons))

    def _budget(self, world: "World", cordons: Mapping[str, "Cordon"]) -> str:
        """What the eviction guard says to taking no node now: its own arithmetic, nobody else's."""
        now_at = world.now()
        facts = GuardFacts(
            now_at=now_at,
            run="",
            fleet=tuple(n.name for n in world.inventory.nodes.values() if n.gpus != 0),
            taken=tuple(Taken(c.node, c.owner, c.at or now_at) for c in cordons.values()),
        )
        site = load_guards(self._settings.guard_files).guards
        lines = [spec for spec in site if spec.kind == BUILT_IN.kind] or [BUILT_IN]
        return "; ".join(said.sentence for said in check_guards(lines, facts))

    async def sweep(self, names: Sequence[str], on_node: Callable[[NodeHealth], None]) -> str:
        world = await self._open()
        from brctl.engine.sweeps.run_checks import Question, sweep_nodes

        job = next(iter(world.jobs.values()), None)
        return (await sweep_nodes(world, names, Question(job=job), on_node)).id

    async def diagnose(self, names: Sequence[str], job: str) -> tuple[str, ...]:
        world = await self._open()
        from brctl.engine.job.diagnose import diagnose

        about = world.job(job) if job else None
        if about is None and not names:
            about = world.job(None)
        asked = about.nodes if about else names
        return tuple(v.id for v in (await diagnose(world, about, asked)).verdicts)

    async def propose(self, verdict_id: str) -> Proposal:
        world = await self._open()
        from brctl.engine.runs.context import run_context
        from brctl.engine.runs.plan import prepare
        from brctl.engine.runs.propose import propose

        verdict = verdict_store.load(world.state_dir, verdict_id).verdict
        dirs = [shipped_dir("playbooks"), *(d / "playbooks" for d in self._settings.library_dirs)]
        move = propose(world.state_dir, self._settings.context, verdict, world.now())
        if not move.playbook:
            raise GuardError(f"{verdict.id}: a person must act: {move.say}", hint="w says why")
        playbook = pick_playbook(load_playbooks(dirs), move.playbook)
        problem = why_not(playbook, verdict)
        if problem:
            raise GuardError(f"refused: {problem}. Nothing changed.", hint="x diagnoses again")
        prepared = await prepare(run_context(world), playbook, verdict)
        self._prepared[prepared.plan.digest] = prepared
        job = str(prepared.inputs.job.get("name") or "")
        words = confirmation_text(playbook, len(prepared.plan.nodes), job)
        command = shlex.join(["brctl", "fix", verdict_id, "--confirm", words])
        return Proposal(prepared.plan, words, command)

    async def start(self, proposal: Proposal) -> str:
        world = await self._open()
        from brctl.engine.runs.context import run_context
        from brctl.engine.runs.remediate import start_run

        self._refuse_readonly()
        prepared = self._prepared.pop(proposal.plan.digest)
        request = self._request(typed=proposal.words)
        return (await start_run(run_context(world), prepared, request)).name

    def _refuse_readonly(self) -> None:
        if self._settings.readonly:
            raise GuardError("refused: read-only")

    async def approve(self, run: str, typed: str) -> None:
        world = await self._open()
        from brctl.engine.runs.context import run_context
        from brctl.engine.runs.remediate import answer, resume

        self._refuse_readonly()
        run_dir = find_run(world.state_dir, run)
        answer(run_context(world), run_dir, person(), yes=True, typed=typed)
        await resume(run_dir, self._request())

    async def deny(self, run: str) -> None:
        world = await self._open()
        from brctl.engine.runs.context import run_context
        from brctl.engine.runs.remediate import answer, resume

        self._refuse_readonly()
        run_dir = find_run(world.state_dir, run)
        answer(run_context(world), run_dir, person(), yes=False)
        await resume(run_dir, self._request())

    async def rollback(self, run: str) -> None:
        world = await self._open()
        from brctl.engine.runs.remediate import roll_back

        self._refuse_readonly()
        await roll_back(find_run(world.state_dir, run), self._request())

    def _request(self, typed: str | None = None) -> "RunRequest":
        from brctl.engine.runs.run_files import RunRequest

        config = self._settings.config_file
        return RunRequest(
            person(), self._settings.context, str(config) if config else "", typed=typed
        )

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
