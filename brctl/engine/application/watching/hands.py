"""What a watcher asks of the rest of brctl: diagnose, plan, tell people, start `fix`."""

import asyncio
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from subprocess import DEVNULL, PIPE

from brctl.actions.standby.acquire import find_candidates
from brctl.engine.application.diagnose import DiagnosisScope, keep_found, look_once
from brctl.engine.application.fix import choose_fix, plan_fix
from brctl.engine.application.runs import find_playbook
from brctl.engine.application.watching.watcher import Attempt, Examined
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.notify_runs import beside_the_work, notify_verdicts
from brctl.engine.incidents.notify_verdicts import notifier_of
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load, load_all
from brctl.engine.job.looks import stopped_by
from brctl.engine.runs.context import run_context
from brctl.engine.runs.propose import propose
from brctl.engine.runs.read_run import read_runs
from brctl.library.own_program import own_program
from brctl.model.errors import BrctlError
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.verdict import Verdict
from brctl.model.watch.policy import WatchPolicy
from brctl.model.watch.state import WatchDecision
from brctl.notify.notifier import Delivery, DeliveryState
from brctl.playbook.run import Run
from brctl.playbook.taken_nodes import TakenNodes, taken_nodes
from brctl.watch.gates import GateFacts, WatchedVerdict

RUNS_BACK = timedelta(days=7)
SAID_LIMIT = 400
FIX_STARTS_S = 120.0
"""`fix --detach` plans, asks its guards and returns; the run goes on without it."""

RUN_EXISTS = frozenset(
    {ExitCode.OK, ExitCode.UNKNOWN, ExitCode.WAITING, ExitCode.ROLLED_BACK, ExitCode.NEEDS_HUMAN}
)
"""How `fix --detach` ends where there is a run, which tells of itself; unknown: it goes on."""


@dataclass(frozen=True, slots=True)
class WatchHands:
    """A watcher's hands in an opened context.

    Attributes:
        current: The controller with its jobs where they run now.
    """

    current: Callable[[], Controller]
    say: Callable[[str], None]

    async def examine(self, job: Job | None, nodes: Sequence[str]) -> Examined:
        """Diagnose as `dx` does and keep the verdicts; whom to tell is the policy's matter."""
        controller = self.current()
        found = await look_once(controller, DiagnosisScope(job, tuple(nodes)), self.say)
        keep_found(controller, found)
        watched = tuple(_watched(controller, verdict) for verdict in found.verdicts)
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
            spares = len((await find_candidates(context, verdict.job)).standbys)
        except BrctlError as error:
            self.say(f"warning: standbys cannot be counted: {error}")
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

    async def start_fix(self, verdict: Verdict, token: int) -> Attempt:
        """Start `fix` as its own process and wait until its run has been started or refused."""
        words = shlex.split(await self._command(verdict))[1:]
        settings = self.current().settings
        config = ["--config", str(settings.config_file)] if settings.config_file else []
        argv = [
            *own_program("brctl"), "--context", settings.context, *config, "--no-input", *words,
            "--detach", "--watch-token", str(token),
        ]  # fmt: skip
        started = await start_program(argv)
        return Attempt(started.done, f"{shlex.join(words)}: {started.text}")

    async def _command(self, verdict: Verdict) -> str:
        """What a person would type; what cannot be planned is told with the reason by `fix`."""
        controller = self.current()
        plain = f"brctl fix {verdict.id}"
        try:
            stored = load(controller.state_dir, verdict.id)
            fix = choose_fix(controller.settings, stored, controller.now())
            return (await plan_fix(run_context(controller), fix)).command
        except BrctlError:
            return plain


async def start_program(argv: Sequence[str]) -> Attempt:
    """Start `fix --detach`, and whether there is a run now."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        async with asyncio.timeout(FIX_STARTS_S):
            _, said = await process.communicate()
    except TimeoutError:
        text = f"still starting after {FIX_STARTS_S:.0f} s; see brctl runs"
        return Attempt(done=False, text=text)
    except OSError as error:
        return Attempt(done=False, text=f"cannot be started: {error}")
    text = " | ".join(said.decode("utf-8", "replace").split("\n"))[:SAID_LIMIT]
    return Attempt(process.returncode in RUN_EXISTS, f"exit {process.returncode}: {text}")


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
