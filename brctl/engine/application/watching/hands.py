"""What a watcher asks of the rest of brctl: diagnose, plan, tell people, start `fix`."""

import asyncio
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from brctl.actions.standby.acquire import find_candidates
from brctl.engine.application.diagnose import DiagnosisScope, keep_found, look_once
from brctl.engine.application.fix import choose_fix, plan_fix
from brctl.engine.application.runs import find_playbook
from brctl.engine.application.watching.contract import Attempt, Examined
from brctl.engine.application.watching.waiting_fix import WaitingFix
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.notify_runs import beside_the_work, notify_verdicts
from brctl.engine.incidents.notify_verdicts import notifier_of
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load, load_all
from brctl.engine.job.looks import stopped_by
from brctl.engine.runs.context import run_context
from brctl.engine.runs.propose import propose
from brctl.engine.runs.read_run import read_runs
from brctl.model.errors import BrctlError, UnavailableError
from brctl.model.jobs.job import Job
from brctl.model.verdict import Verdict
from brctl.model.watch.policy import WatchPolicy
from brctl.model.watch.state import MassEvent, WatchDecision
from brctl.notify.notifier import Delivery, DeliveryState
from brctl.playbook.run import Run
from brctl.playbook.taken_nodes import TakenNodes, taken_nodes
from brctl.view.notices.notice import watched_notice
from brctl.watch.gates import GateFacts, WatchedVerdict

RUNS_BACK = timedelta(days=7)
LOOK_S, STANDBYS_S = 300.0, 30.0
"""A scheduler that hangs must not keep a job from being looked at again."""


@dataclass(frozen=True, slots=True)
class WatchHands:
    """A watcher's hands in an opened context.

    Attributes:
        current: The controller with its jobs where they run now.
        waiting_fix: Started with a diagnosis, so that a verdict need not wait for a program.
        may_act: Whether `fix` may be started at all.
    """

    current: Callable[[], Controller]
    say: Callable[[str], None]
    waiting_fix: WaitingFix = field(default_factory=WaitingFix)
    may_act: bool = False

    async def examine(self, job: Job | None, nodes: Sequence[str]) -> Examined:
        """Diagnose as `dx` does and keep the verdicts; whom to tell is the policy's matter."""
        controller = self.current()
        if self.may_act:
            await self.waiting_fix.prepare()
        try:
            async with asyncio.timeout(LOOK_S):
                found = await look_once(controller, DiagnosisScope(job, tuple(nodes)), self.say)
        except TimeoutError as late:
            raise UnavailableError(f"the diagnosis did not end in {LOOK_S:.0f} s") from late
        keep_found(controller, found)
        watched = tuple(_watched(controller, verdict) for verdict in found.verdicts)
        if not any(verdict.playbook for verdict in watched):
            await self.waiting_fix.close()
        return Examined(controller.now(), found.verdicts, watched)

    def busy_with(self, job: str) -> str:
        """The run that stopped a job or is at work on it; "" for none."""
        controller = self.current()
        return stopped_by(controller.state_dir, job, controller.now() - RUNS_BACK)

    async def facts(self, verdict: WatchedVerdict, policy: WatchPolicy) -> GateFacts:
        """The moment, the fleet's size, the standbys, and the calendars that the policy names."""
        controller = self.current()
        context = run_context(controller)
        spares: int | None = None
        try:
            async with asyncio.timeout(STANDBYS_S):
                spares = len((await find_candidates(context, verdict.job)).standbys)
        except (BrctlError, TimeoutError) as error:
            why = str(error) or f"no answer in {STANDBYS_S:.0f} s"
            self.say(f"warning: standbys cannot be counted: {why}")
        calendars = {name: context.calendars.read(name) for name in policy.freezes}
        return GateFacts(controller.now(), len(controller.inventory.nodes), spares, calendars)

    def touched(self, since: datetime) -> Mapping[str, datetime]:
        """Nodes that a person uncordoned since then, or of which one dismissed a verdict."""
        state_dir = self.current().state_dir
        found = dismissed_at(load_all(state_dir), since)
        for run in read_runs(state_dir, since):
            if isinstance(run, Run) and run.playbook.name == "uncordon" and run.events:
                found |= dict.fromkeys(run.nodes, run.events[-1].at)
        return found

    async def page(self, verdict: Verdict, decision: WatchDecision) -> Attempt:
        """Page with the command; what became of it at each sink, for the record."""
        controller = self.current()
        notifier, context = notifier_of(controller), controller.settings.context
        deliveries: tuple[Delivery, ...] = ()
        with beside_the_work(self.say):
            deliveries = await notify_verdicts(
                notifier, context, [verdict], controller.now(), say=self.say
            )
        return paged(await self._command(verdict), deliveries)

    async def tell(self, event: MassEvent) -> Attempt:
        """One message for many nodes; what became of it at each sink."""
        controller = self.current()
        notice = watched_notice(
            controller.settings.context, event.about, event.text, event.nodes, controller.now(),
            over=event.over,
        )  # fmt: skip
        deliveries: tuple[Delivery, ...] = ()
        with beside_the_work(self.say):
            deliveries = await notifier_of(controller).notify_async(notice)
        return paged(event.text, deliveries)

    async def start_fix(self, verdict: Verdict, token: int) -> Attempt:
        """Start `fix` as its own process and wait until its run has been started or refused."""
        words, settings = ["fix", verdict.id], self.current().settings
        config = ["--config", str(settings.config_file)] if settings.config_file else []
        started = await self.waiting_fix.run(
            ["--context", settings.context, *config, "--no-input", *words, "--detach",
             "--watch-token", str(token)]
        )  # fmt: skip
        return Attempt(started.done, f"{shlex.join(words)}: {started.text}")

    async def _command(self, verdict: Verdict) -> str:
        """What a person would type; where it cannot be planned, `fix` tells the reason."""
        controller = self.current()
        plain = f"brctl fix {verdict.id}"
        try:
            stored = load(controller.state_dir, verdict.id)
            fix = choose_fix(controller.settings, stored, controller.now())
            return (await plan_fix(run_context(controller), fix)).command
        except BrctlError:
            return plain


def paged(command: str, deliveries: Sequence[Delivery]) -> Attempt:
    """Whether some sink has told people, and what each answered."""
    told = any(d.state in (DeliveryState.SENT, DeliveryState.KNOWN) for d in deliveries)
    sinks = [f"{d.sink} {d.state}" + (f" ({d.why})" if d.why else "") for d in deliveries]
    return Attempt(told, f"{command}: {', '.join(sinks) or 'no sink was told'}")


def dismissed_at(stored: Iterable[StoredVerdict], since: datetime) -> dict[str, datetime]:
    """Nodes of which a person dismissed a verdict since then, and when the person did so last."""
    found: dict[str, datetime] = {}
    for one in stored:
        at = one.at or one.verdict.decided_at
        if one.state is VerdictState.DISMISSED and at >= since:
            found |= {node: max(at, found.get(node, at)) for node in one.verdict.nodes}
    return found


def _watched(controller: Controller, verdict: Verdict) -> WatchedVerdict:
    """With the playbook that `fix` would choose now: after a try it is the tree's next one."""
    settings = controller.settings
    now = controller.now()
    name = propose(settings.state_dir, settings.context, verdict, now).playbook
    taken = taken_nodes(find_playbook(settings.library_dirs, name)) if name else TakenNodes.NONE
    return WatchedVerdict(
        verdict.id, verdict.fault, verdict.confidence, verdict.nodes, verdict.job, name,
        taken is not TakenNodes.NONE, verdict.job_step, taken is TakenNodes.FOUND,
    )  # fmt: skip
