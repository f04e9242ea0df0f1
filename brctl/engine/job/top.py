"""Look at a job again and again: over connections that stay open, or one login a look."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from brctl.engine.controller.wiring import Controller, with_jobs_placed
from brctl.engine.job.read_ranks import read_ranks, scheduler_says
from brctl.engine.watch.held_nodes import HeldNode, HeldNodes
from brctl.evidence.job.status import read_job, with_scheduler
from brctl.evidence.job.top import CHECKS, TopLook, top_look
from brctl.evidence.trends import counted
from brctl.library.parameters import fill_parameters
from brctl.model.command import Command, Outcome
from brctl.model.errors import BrctlError
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, NodeReport
from brctl.sweep.held_look import HeldLook
from brctl.sweep.stream import sweep
from brctl.watch.rules import UNSENT

PLACED_EVERY_S = 15.0
SILENT_AFTER_S = 30.0
"""Three heartbeats, as a watcher's."""


async def look_once(controller: Controller, job: Job) -> TopLook:
    """One look: one login a node."""
    return await _of_reports(controller, job, await _ask(controller, job))


async def _ask(controller: Controller, job: Job) -> list[NodeReport]:
    controller.inventory.require(job.nodes)
    stream = sweep(
        controller.transport,
        controller.inventory.pick(job.nodes),
        _checks(controller),
        lambda node, check: fill_parameters(check, node, job),
        limit=controller.settings.ssh.fanout,
        root=controller.settings.ssh.root,
        now=controller.now,
    )
    async with aclosing(stream) as reports:
        return [report async for report in reports]


async def _of_reports(controller: Controller, job: Job, found: Sequence[NodeReport]) -> TopLook:
    answered = [report for report in found if report.outcome is Outcome.ANSWERED]
    silent = {r.node: r.why_silent for r in found if r.outcome is not Outcome.ANSWERED}
    status = await read_ranks(controller.backend, job, found)
    return top_look(status, answered, dict.fromkeys(job.nodes, 0.0), silent, controller.now())


async def follow(
    controller: Controller, name: str | None, every_s: float
) -> AsyncGenerator[TopLook, None]:
    """Looks until nobody wants another."""
    job = controller.job(name)
    # One login a node first: what a person waits for is whole at once.
    reports = await _ask(controller, job)
    held = HeldJob(controller, job, every_s, reports)
    try:
        yield await _of_reports(controller, job, reports)
        await held.hold()
        while True:
            await asyncio.sleep(every_s)
            yield await held.look()
    finally:
        await held.close()


@dataclass(slots=True)
class HeldAnswers:
    """A node's newest answers, and since when nothing renewed them."""

    results: dict[str, CheckResult] = field(default_factory=dict)
    looks: Mapping[float, int] = field(default_factory=dict)
    renewed_s: float = 0.0


class HeldJob:
    """One connection to each node of a job."""

    def __init__(
        self, controller: Controller, job: Job, every_s: float, first: Sequence[NodeReport]
    ) -> None:
        self._controller, self._job = controller, job
        self._checks = _checks(controller)
        # The first round is asked when the kernel log grows, and nothing is asked in it here.
        self._look = HeldLook(self._checks, {every_s / 2: (), every_s: CHECKS}, UNSENT)
        fanout = controller.settings.ssh.fanout
        self._held = HeldNodes(controller.transport, self._checks, fanout, time.monotonic)
        now_s = time.monotonic()
        self._answers = {
            report.node: HeldAnswers({r.check: r for r in report.results}, renewed_s=now_s)
            for report in first
        }
        self._counters = counted(first, {})
        self._scheduler: JobRunState | None = None
        self._trouble = ""
        self._placed_s = now_s - PLACED_EVERY_S

    async def look(self) -> TopLook:
        """What is known now; connections are made, and made again, meanwhile."""
        await self.hold()
        now_s = time.monotonic()
        for name, node in self._held.nodes.items():
            self._take(self._answers.setdefault(name, HeldAnswers()), node, now_s)
        silent = self._held.silent_s(SILENT_AFTER_S)
        reports = [
            NodeReport(name, Outcome.ANSWERED, tuple(answers.results.values()))
            for name, answers in self._answers.items()
            if answers.results and name in self._held.nodes and name not in silent
        ]
        status = with_scheduler(read_job(self._job, reports), self._scheduler)
        ages = {name: now_s - answers.renewed_s for name, answers in self._answers.items()}
        why = {name: node.trouble for name, node in self._held.nodes.items()}
        self._counters = counted(reports, self._counters)
        now = self._controller.now()
        found = top_look(status, reports, ages, why, now, self._counters)
        return replace(found, placement_trouble=self._trouble)

    async def hold(self) -> None:
        """Connect to where the job runs now; asked again now and then."""
        if time.monotonic() - self._placed_s >= PLACED_EVERY_S:
            self._placed_s = time.monotonic()
            await self._place()

    async def close(self) -> None:
        """End all; the programs end with their input."""
        await self._held.close()

    def _take(self, answers: HeldAnswers, node: HeldNode, now_s: float) -> None:
        fresh, node.fresh = node.fresh, {}
        answers.results.update(fresh)
        if fresh or node.looks != answers.looks:
            answers.renewed_s, answers.looks = now_s, node.looks

    async def _place(self) -> None:
        """A swap moves ranks; a scheduler that names no node we know leaves all as it was."""
        try:
            async with asyncio.timeout(PLACED_EVERY_S):
                controller = await with_jobs_placed(self._controller)
            job = controller.jobs.get(self._job.name, self._job)
            controller.inventory.require(job.nodes)
            self._controller, self._job, self._trouble = controller, job, ""
        except TimeoutError:
            self._trouble = f"no answer in {PLACED_EVERY_S:.0f} s"
            return
        except BrctlError as error:
            self._trouble = str(error)
            return
        finally:
            self._held.hold({node.name: (node, self._command(node)) for node in self._nodes()})
        self._scheduler = await scheduler_says(self._controller.backend, self._job)

    def _nodes(self) -> tuple[Node, ...]:
        return tuple(self._controller.inventory.pick(self._job.nodes))

    def _command(self, node: Node) -> Command:
        asked = self._checks.items()
        told = {name: fill_parameters(check, node, self._job) for name, check in asked}
        return self._look.command(node, told, self._controller.settings.ssh.root)


def _checks(controller: Controller) -> dict[str, Check]:
    """What a site left out is not asked; the page says that it was not measured."""
    known = controller.checks
    return {name: replace(known[name], level=1) for name in CHECKS if name in known}
