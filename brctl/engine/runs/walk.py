"""Take one node run through the steps: one node of `for_each`, or the whole run without it."""

import asyncio
from dataclasses import dataclass

from brctl.engine.runs.approve import pass_gate
from brctl.engine.runs.attempt import StepAttempts, StepFailedError
from brctl.engine.runs.guard_checks import GuardChecks
from brctl.engine.runs.human_uncordon import UncordonWatch
from brctl.engine.runs.node_facts import facts_for
from brctl.engine.runs.session import Ending, RunEnds, RunSession
from brctl.engine.runs.undo import take_back_node
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import JOINED_AT_END, OnFailure, Safety, Step
from brctl.model.runs.result import NodeResult, RunState
from brctl.model.units import parse_rfc3339, rfc3339
from brctl.playbook.assemble import skip_reason
from brctl.playbook.expressions import ExpressionError
from brctl.playbook.node_runs import instance_of
from brctl.playbook.plan import takes_found_nodes
from brctl.playbook.run_record import TAKEN_BACK
from brctl.playbook.steps import StepState

E = EventType
AFTER_SUCCESS, AFTER_FAILURE = "success", "failure"
_BEFORE = (StepState.PENDING, StepState.FAILED, *TAKEN_BACK)
"""States in which a step is still to be done."""


class NodeRunStopsError(Exception):
    """Another node run ended the run; this one has finished its step."""


@dataclass(slots=True)
class StopFlag:
    """Stops every node run after its current step.

    Attributes:
        interrupted: A signal asked for it.
        run_ended: Another node run ended the run.
    """

    interrupted: ExitCode | None = None
    run_ended: bool = False

    def check(self) -> None:
        """Go on, or stop here."""
        if self.interrupted is not None:
            ending = Ending(
                RunState.INTERRUPTED, "stopped after the current step", self.interrupted
            )
            raise RunEnds(ending)
        if self.run_ended:
            raise NodeRunStopsError


class NodeRunCancelledError(Exception):
    """A person took the matter of this node into their own hands."""


class ApprovalGate:
    """The approval before one step. Given once, it holds for every node: all were in the plan."""

    def __init__(self, session: RunSession, checks: GuardChecks) -> None:
        self._session = session
        self._checks = checks
        self._one_at_a_time = asyncio.Lock()
        self._passed = False

    async def pass_before(self, step: Step, node: str, stop: StopFlag) -> None:
        """Let a node run through to this step.

        Raises:
            RunEnds: The run must wait for people, or they said no.
        """
        approval, steps = self._session.playbook.approval, self._session.record.steps
        waiting = steps[instance_of(step.id, node)].state in _BEFORE
        if approval is None or step.id != approval.gate_before or not waiting:
            return
        async with self._one_at_a_time:
            stop.check()
            open_already = self._passed or self._another_node_is_through(step, node)
            if not open_already and await pass_gate(self._session, step):
                await self._checks.check("after approval")
            self._passed = True

    def _another_node_is_through(self, step: Step, node: str) -> bool:
        names = (
            instance_of(step.id, other) for other in self._session.record.node_runs if other != node
        )
        return any(self._session.record.steps[name].attempts for name in names)


class Walker:
    """One node run."""

    def __init__(
        self,
        session: RunSession,
        node: str,
        checks: GuardChecks,
        gate: ApprovalGate,
        stop: StopFlag,
    ) -> None:
        self._session = session
        self._node = node
        self._checks = checks
        self._gate = gate
        self._stop = stop
        self._node_run = session.record.node_runs[node]
        self._uncordons = UncordonWatch(session, node)
        self._beside: dict[str, list[asyncio.Task[None]]] = {}

    async def walk(self) -> None:
        """Every step from where the journal stands to the end of the node run.

        Raises:
            StepFailedError: A step failed, and that ends the whole run.
            RunEnds: The run must wait, or was interrupted.
        """
        if self._node_run.given_up:
            return await self._give_up()
        if self._node and not self._node_run.started_at:
            now = rfc3339(self._session.context.clock.now())
            self._session.write(E.NODE_STARTED, {"node": self._node, "started_at": now})
        try:
            passed_over = await self._steps()
        except StepFailedError as failed:
            if failed.step.on_failure is not OnFailure.NEXT_NODE:
                raise
            await self._give_up()
        except NodeRunCancelledError as cancelled:
            await self._cancel(str(cancelled))
        else:
            self._end(NodeResult.SKIPPED if passed_over else NodeResult.OK, passed_over)

    async def _steps(self) -> str:
        """The steps in their order; says why when a guard passes the node over instead."""
        if self._node:
            why = await self._checks.check(f"before {self._node}", node=self._node)
            if why and not self._begun():
                return why
        try:
            for step in self._session.playbook.steps:
                await self._take(step)
        finally:
            # Their results are in the journal before anything is taken back or the run ends.
            running = [task for tasks in self._beside.values() for task in tasks]
            await asyncio.gather(*running, return_exceptions=True)
        await self._join(JOINED_AT_END)
        return ""

    async def _take(self, step: Step) -> None:
        await self._join(step.id)
        if step.after == AFTER_FAILURE:
            self._skip(step, "no step failed")
            return
        await self._gate.pass_before(step, self._node, self._stop)
        if step.joined_before:
            task = asyncio.create_task(self._run_step(step))
            self._beside.setdefault(step.joined_before, []).append(task)
            await asyncio.sleep(0)  # its intent is on disk before the next step begins
        else:
            await self._run_step(step)
        self._stop.check()

    async def _join(self, before: str) -> None:
        """Wait for the steps that are to be over before this one, or before the end."""
        await asyncio.gather(*self._beside.pop(before, ()))

    def _begun(self) -> bool:
        steps = self._session.record.steps
        return any(
            steps[instance_of(step.id, self._node)].attempts
            for step in self._session.playbook.steps
        )

    async def _give_up(self) -> None:
        """Take this node's changes back and do what follows a failure; the others go on."""
        why = await take_back_node(self._session, self._node)
        why = "; ".join(filter(None, (why, await self.after_failure())))
        failed = f"{self._node_run.failed_step}: {self._node_run.failed_error}"
        if why:
            self._end(NodeResult.NEEDS_HUMAN, f"{failed}; {why}")
        else:
            self._end(NodeResult.FAILED, failed)

    async def _cancel(self, why: str) -> None:
        """Nothing more is done to this node, and what this run did to it is taken back."""
        for step in self._session.playbook.steps:
            self._skip(step, why)
        stuck = await take_back_node(self._session, self._node)
        if stuck:
            self._end(NodeResult.NEEDS_HUMAN, f"{why}; {stuck}")
        else:
            self._end(NodeResult.SKIPPED, why)

    def _end(self, result: NodeResult, why: str) -> None:
        if not self._node:
            return
        began = parse_rfc3339(self._node_run.started_at)
        fields = {"node": self._node, "result": result, "why": why}
        step = self._node_run.failed_step
        self._session.write(
            E.NODE_ENDED, {**fields, "failed_step": step, "seconds": self._session.since(began)}
        )

    async def after_failure(self) -> str:
        """The steps behind the failed one that ask for it; says which of them failed, or ""."""
        ids = [step.id for step in self._session.playbook.steps]
        for step in self._session.playbook.steps[ids.index(self._node_run.failed_step) + 1 :]:
            if step.after != AFTER_SUCCESS:
                try:
                    await self._run_step(step, afterwards=True)
                except StepFailedError as failed:
                    return str(failed)
        return ""

    async def _run_step(self, step: Step, *, afterwards: bool = False) -> None:
        name = instance_of(step.id, self._node)
        record = self._session.record.steps[name]
        attempts = StepAttempts(self._session, step, self._node, afterwards=afterwards)
        if record.state is StepState.UNCERTAIN:
            await attempts.settle()
        over = record.state in (StepState.DONE, StepState.SKIPPED)
        if over or name in self._session.record.forgiven:
            return
        reason = await self._reason_to_skip(step)
        if reason is not None and record.state is StepState.PENDING:
            self._skip(step, reason or "condition unknown")
            return
        takes = takes_found_nodes(step)
        if step.safety in (Safety.DISRUPTIVE, Safety.DESTRUCTIVE) or takes:
            await self._checks.check(f"before {name}", node=self._node, takes=takes)
        why = "" if afterwards else await self._uncordons.before(step)
        if why:
            raise NodeRunCancelledError(why)
        await attempts.run()

    async def _reason_to_skip(self, step: Step) -> str | None:
        if self._node:
            facts = await facts_for(self._session.context, step, self._node)
            self._session.facts[self._node] = facts
        try:
            return skip_reason(step, self._session.scope(self._node))
        except ExpressionError as exc:
            return f"its condition cannot be evaluated: {exc}"

    def _skip(self, step: Step, why: str) -> None:
        name = instance_of(step.id, self._node)
        if self._session.record.steps[name].state is StepState.PENDING:
            self._session.write(E.STEP_SKIPPED, {"step": name, "why": why})
