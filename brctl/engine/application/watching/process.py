"""One process that watches: opens the context, holds the nodes, ticks until it is stopped."""

import asyncio
import hashlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from brctl import __version__
from brctl.engine.application.watching.contract import Said
from brctl.engine.application.watching.hands import WatchHands
from brctl.engine.application.watching.placement import AskedAgain
from brctl.engine.application.watching.watcher import Watcher
from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import Controller, with_jobs_placed
from brctl.engine.incidents.notify_verdicts import notifier_of
from brctl.engine.sweeps.cycle import write_metrics
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.held_nodes import HeldNodes
from brctl.engine.watch.leader import LEASE_S, TICK_S, Leader, refuse_stopped
from brctl.engine.watch.metrics_endpoint import MetricsEndpoint
from brctl.engine.watch.policy_file import policy_or_observe
from brctl.engine.watch.service_manager import tell_service_manager
from brctl.engine.watch.trend_sampling import SAMPLE_EVERY_S, TrendSampling
from brctl.engine.watch.writing import Writing
from brctl.library.parameters import fill_parameters
from brctl.model.errors import BrctlError, LockedError
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.units import rfc3339
from brctl.model.watch.policy import WatchMode, WatchPolicy, strictest
from brctl.sweep.held_look import HeldLook
from brctl.view.fleet.prometheus import totals_text
from brctl.view.watch.metrics import watch_samples, watch_totals
from brctl.watch.rules import ROUNDS, UNSENT

STATUS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watcher is started for.

    Attributes:
        job: This job and its nodes; None for every job, on the chosen nodes or all.
        cap: The most that it may do, whatever the policy allows.
        wait: Stand by while another one leads.
        prom: File of metrics for a collector; None for none.
        listen: Host and port where metrics are served; None for nowhere.
    """

    job: str | None
    include: str | None
    exclude: str | None
    cap: WatchMode
    policy: Path | None
    wait: bool
    prom: Path | None = None
    listen: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A context with its jobs where they run now, and the nodes that are looked at."""

    controller: Controller
    names: tuple[str, ...]


class HeldSaid:
    """Held nodes as the watcher reads them: what is taken is taken once."""

    def __init__(self, held: HeldNodes, trends: TrendSampling) -> None:
        self._held, self._trends = held, trends

    def said(self) -> Mapping[str, Said]:
        """What each node said since it was asked last."""
        found: dict[str, Said] = {}
        for name, node in self._held.nodes.items():
            if node.looks or node.fresh:
                fresh, node.fresh = node.fresh, {}
                self._trends.take(name, fresh, node.looks)
                found[name] = Said(fresh, node.looks, dict(node.told))
        return found

    def silent_s(self, after_s: float) -> Mapping[str, float]:
        """Nodes that have said nothing for longer than this."""
        return self._held.silent_s(after_s)

    def waiting(self) -> frozenset[str]:
        """Nodes that wait for their turn to log in."""
        return self._held.waiting()

    def stale(self) -> frozenset[str]:
        """Nodes that nobody could ask since they spoke last."""
        return self._held.stale()


async def watch(controller: Controller, request: WatchRequest, say: Callable[[str], None]) -> None:
    """Watch until somebody stops it.

    Raises:
        LockedError: Another watcher leads, or took over.
        GuardError: Watching was switched off.
    """
    settings = controller.settings
    folder = WatchFolder(controller.state_dir, settings.context)
    leader = Leader(controller.state_dir, settings.context)
    await lead(leader, folder, controller.now, say, wait=request.wait)
    try:
        await _Watching(controller, request, folder, leader, say).run()
    finally:
        leader.release()


async def lead(
    leader: Leader,
    folder: WatchFolder,
    now: Callable[[], datetime],
    say: Callable[[str], None],
    *,
    wait: bool,
) -> None:
    """Become the leader, or wait for it; one that stands by is ready for its service manager."""
    told = False
    while True:
        refuse_stopped(folder)
        try:
            leader.take(now())
        except LockedError as held:
            if not wait:
                raise
            if not told:
                say(f"standing by: {held}")
            told = True
            tell_service_manager({"READY": "1", "WATCHDOG": "1", "STATUS": f"standing by: {held}"})
            await asyncio.sleep(LEASE_S / 3)
        else:
            return


class _Watching:
    """The loop around a watcher."""

    def __init__(
        self,
        controller: Controller,
        request: WatchRequest,
        folder: WatchFolder,
        leader: Leader,
        say: Callable[[str], None],
    ) -> None:
        self._controller, self._request, self._say = controller, request, say
        self._folder, self._leader = folder, leader
        names = {name for names in ROUNDS.values() for name in names}
        self._checks = {n: c for n, c in controller.checks.items() if n in names}
        self._look = HeldLook(self._checks, ROUNDS, UNSENT)
        self._policy = policy_or_observe(request.policy)
        self._held = HeldNodes(
            controller.transport, self._checks, controller.settings.ssh.fanout, time.monotonic
        )
        may_act = strictest(request.cap, self._policy.most) is WatchMode.ACT
        self._hands = hands = WatchHands(lambda: self._controller, say, may_act=may_act)
        store = TrendStore(controller.state_dir, controller.settings.context)
        self._trends = TrendSampling(store, say)
        said = HeldSaid(self._held, self._trends)
        self._watcher = Watcher(
            folder, leader, said, hands, self._checks, self._policy, request.cap,
            say,
        )  # fmt: skip
        self._jobs: tuple[Job, ...] = ()
        self._placing = AskedAgain(self._place, time.monotonic())
        self._ticks = Writing(say, "nothing can be written, so nothing is done")
        self._statuses = Writing(say, "`watch status` cannot be told")
        self._endpoint = MetricsEndpoint(request.listen) if request.listen else None
        self._serving = Writing(say, "metrics are not served; it is tried again")

    async def run(self) -> None:
        # Where jobs run was asked when the context was opened.
        known = self._hold(Placed(self._controller, await self._names(self._controller)))
        under = f"{__version__} {_mark_of(self._policy)}"
        self._watcher.begin(self._controller.now(), under, len(known))
        self._say(_greeting(len(known), self._request.cap, self._policy))
        if self._pages_nobody():
            self._say("warning: nobody would be told: `notify` of the configuration has no sink")
        told_s = sampled_s = time.monotonic()
        try:
            while not self._folder.stopped():
                seconds = time.monotonic()
                placed = self._placing.answer(seconds)
                known = self._hold(placed) if placed is not None else known
                ready = {"READY": "1"} if self._tick(seconds, known) else {}
                # A full disk is no reason to start it anew: it would find the same disk.
                tell_service_manager({**ready, "WATCHDOG": "1"})
                if seconds - told_s >= STATUS_EVERY_S:
                    told_s = seconds
                    self._tell_status(known)
                if seconds - sampled_s >= SAMPLE_EVERY_S:
                    sampled_s = seconds
                    self._trends.sample(self._controller.now(), seconds, self._jobs)
                await asyncio.sleep(TICK_S)
            self._say(self._folder.stopped())
        finally:
            if self._endpoint is not None:
                self._endpoint.close()
            await self._placing.close()
            await self._watcher.close()
            await self._hands.waiting_fix.close()
            await self._held.close()
            await self._trends.close()

    def _pages_nobody(self) -> bool:
        goes_to = strictest(self._request.cap, self._policy.most)
        return goes_to is not WatchMode.OBSERVE and not notifier_of(self._controller).configured

    def _tick(self, seconds: float, known: frozenset[str]) -> bool:
        """One tick, and whether it was whole.

        A disk that takes nothing stops no looking, and nothing is done meanwhile.
        """
        now, trouble = self._controller.now(), self._placing.trouble
        return self._ticks.went_well(
            lambda: self._watcher.tick(now, seconds, self._jobs, known, trouble)
        )

    async def _place(self) -> Placed:
        controller = await with_jobs_placed(self._controller)
        return Placed(controller, await self._names(controller))

    def _hold(self, placed: Placed) -> frozenset[str]:
        """Look at these nodes, each asked by the job that it carries; their names."""
        self._controller = placed.controller
        wanted = self._request.job
        self._jobs = tuple(j for j in self._controller.jobs.values() if wanted in (None, j.name))
        on = {node: job for job in self._jobs for node in job.nodes}
        nodes = self._controller.inventory.pick(placed.names)
        root = self._controller.settings.ssh.root
        self._held.hold(
            {
                node.name: (
                    node,
                    self._look.command(node, self._parameters(node, on.get(node.name)), root),
                )
                for node in nodes
            }
        )
        return frozenset(placed.names)

    def _parameters(self, node: Node, job: Job | None) -> Mapping[str, Mapping[str, object]]:
        return {name: fill_parameters(check, node, job) for name, check in self._checks.items()}

    async def _names(self, controller: Controller) -> tuple[str, ...]:
        request = self._request
        if request.job is not None and request.include is None:
            nodes = tuple(controller.job(request.job).nodes)
            controller.inventory.require(nodes)
            return nodes
        return await select_nodes(controller, request.include, request.exclude)

    def _tell_status(self, known: frozenset[str]) -> None:
        suspects = len(self._watcher.state.suspicions)
        line = f"{len(known)} nodes, {suspects} suspected, {self._request.cap}"
        tell_service_manager({"STATUS": line})
        silent = self._held.silent_s(LEASE_S)
        shares = [n.cpu_share for n in self._held.nodes.values() if n.cpu_share is not None]
        status = {
            "at": rfc3339(self._controller.now()),
            "holder": self._leader.holder,
            "token": self._leader.token,
            "mode": str(self._request.cap),
            "nodes": len(known),
            "fleet": len(self._controller.inventory.nodes),
            "talking": sum(n.talking for n in self._held.nodes.values()),
            "reconnecting": self._held.reconnecting(),
            "policy": self._policy.origin,
            "limits": msgspec.to_builtins(self._policy.limits),
            "freeze": list(self._policy.freezes),
            "silent": sorted(silent),
            "cpu_percent_a_node": round(100 * max(shares), 3) if shares else None,
            "problem": self._policy.problem or self._ticks.trouble,
            "scheduler": self._placing.trouble,
        }
        self._statuses.went_well(lambda: self._folder.tell_status(status))
        self._tell_metrics(status)

    def _tell_metrics(self, status: Mapping[str, object]) -> None:
        """Metrics are no reason to stop looking."""
        context, state = self._controller.settings.context, self._watcher.state
        stopped = self._folder.stopped()
        if self._endpoint is not None:
            self._endpoint.collector.samples = partial(
                watch_samples, status, state, stopped, context
            )
            self._serving.went_well(self._endpoint.open)
        if self._request.prom is None:
            return
        totals = watch_totals(status, state, stopped, context, self._controller.now())
        try:
            write_metrics(self._request.prom, totals_text(totals))
        except BrctlError as error:
            self._say(f"warning: {error}")


def _mark_of(policy: WatchPolicy) -> str:
    """A policy that was changed is another one, under whatever name."""
    digest = hashlib.sha256(repr(policy).encode()).hexdigest()[:8]
    return f"{policy.origin or 'built-in'} {digest}"


def _greeting(nodes: int, cap: WatchMode, policy: WatchPolicy) -> str:
    where = f"{socket.gethostname()} pid {os.getpid()}"
    return f"watching {nodes} nodes, mode {cap}, {policy.origin or 'built-in policy'}; {where}"
