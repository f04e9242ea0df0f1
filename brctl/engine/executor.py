"""Carry out one run: intent on disk, act, result on disk.

Nothing here is remembered outside the journal. Killing this process at any line and starting it
again continues the run: a step in doubt is settled by looking at the world.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime

from brctl.actions.base import ACTIONS
from brctl.actions.contract import Action, ActionFailed, Done, FailureKind, Seen
from brctl.engine.approving import pass_gate
from brctl.engine.guarding import FORWARD_ONLY, Guarding, refusal
from brctl.engine.planning import skip_reason
from brctl.engine.run_desk import Ending, RunDesk, RunEnds
from brctl.engine.undoing import expire, roll_back
from brctl.model.errors import BrctlError, LockedError
from brctl.model.event import EventType
from brctl.model.exit_codes import ExitCode
from brctl.model.playbook import Hook, Json, OnFailure, Safety, Step
from brctl.playbook.expressions import ExpressionError
from brctl.playbook.plan import arguments_of, takes_found_nodes
from brctl.playbook.steps import StepState
from brctl.playbook.templates import expand

E = EventType
HOOK_TIMEOUT_S = 30.0


class Executor:
    """Walks the steps of one run from where its journal stands."""

    def __init__(self, desk: RunDesk) -> None:
        self._desk = desk
        self._guarding = Guarding(
            desk.ground, desk.playbook, desk.site, desk.record, desk.request.override
        )
        self.interrupted: ExitCode | None = None

    async def run(self) -> Ending:
        """Everything from where the journal stands to an ending."""
        try:
            if self._desk.request.undo and not self._desk.record.rolling_back:
                self._desk.write(
                    E.ROLLBACK_STARTED, {"because": f"asked for by {self._desk.request.by}"}
                )
            if self._desk.record.expired:
                return await expire(self._desk)
            if self._desk.record.rolling_back:
                return await roll_back(self._desk)
            await self._check_guards("resume" if self._desk.any_started() else "start")
            for step in self._desk.playbook.steps:
                await self._pass_gate(step)
                await self._take(step)
                self._stop_when_asked()
        except RunEnds as exc:
            return exc.ending
        return Ending("ok", ExitCode.OK)

    async def _pass_gate(self, step: Step) -> None:
        approval, state = self._desk.playbook.approval, self._desk.record.steps[step.id].state
        waiting = state in (StepState.PENDING, StepState.FAILED)
        if approval is None or step.id != approval.gate_before or not waiting:
            return
        if await pass_gate(self._desk, step):
            await self._check_guards("after approval")

    def _stop_when_asked(self) -> None:
        if self.interrupted is not None:
            raise RunEnds(Ending("interrupted", self.interrupted, "stopped after the current step"))

    async def _check_guards(self, moment: str, *, takes: bool = False) -> None:
        kinds = FORWARD_ONLY if self._desk.record.past_no_return(self._desk.playbook) else None
        if kinds is not None and takes:
            kinds |= {"blast_radius"}
        results = await self._guarding.check(self._desk.inputs, self._desk.scope(), kinds)
        said = refusal(results)
        self._desk.write(
            E.GUARDS_CHECKED,
            {
                "when": moment,
                "ok": said is None,
                "guards": [
                    {
                        "guard": r.kind,
                        "ok": r.ok,
                        "says": r.sentence,
                        "origin": r.origin,
                        "overridden_by": r.overridden_by or None,
                    }
                    for r in results
                ],
            },
        )
        if said is None:
            return
        if self._desk.anything_changed():
            raise RunEnds(Ending("waiting", ExitCode.WAITING, f"paused by {said}"))
        raise RunEnds(Ending("refused", ExitCode.REFUSED, f"refused by {said}"))

    async def _take(self, step: Step) -> None:
        record = self._desk.record.steps[step.id]
        if record.state is StepState.UNCERTAIN:
            await self._settle(step)
        if step.id in self._desk.record.forgiven or record.state in (
            StepState.DONE,
            StepState.SKIPPED,
        ):
            return
        try:
            reason = skip_reason(step, self._desk.scope())
        except ExpressionError as exc:
            reason = f"its condition cannot be evaluated: {exc}"
        if reason is not None and record.state is StepState.PENDING:
            self._desk.write(
                E.STEP_SKIPPED, {"step": step.id, "why": reason or "condition unknown"}
            )
            return
        if step.safety in (Safety.DISRUPTIVE, Safety.DESTRUCTIVE) or takes_found_nodes(step):
            await self._check_guards(f"before {step.id}", takes=takes_found_nodes(step))
        await self._attempt(step)

    async def _settle(self, step: Step) -> None:
        """The last process died inside this step: what does the world say?"""
        given = self._desk.record.steps[step.id].given
        if step.safety is Safety.READ:
            return
        try:
            seen = await ACTIONS[step.uses].observe(self._desk.site, given)
        except (ActionFailed, BrctlError) as exc:
            seen = Seen(None, say=str(exc))
        if seen.done:
            say = f"was in doubt; looked: {seen.say}"
            self._desk.write(E.STEP_SETTLED, {"step": step.id, "out": seen.out, "say": say})

    async def _attempt(self, step: Step) -> None:
        """Try until it works, the retries are used up, or the failure is of another kind."""
        record, delay_s = self._desk.record.steps[step.id], step.retry.backoff_s
        for tried in range(step.retry.times + 1):
            failure = await self._act(step, last=tried == step.retry.times)
            if failure is None:
                return
            if record.error and self._is_final(step, failure, last=tried == step.retry.times):
                break
            await self._desk.site.pause(delay_s)
            delay_s *= step.retry.factor
        await self._after_failure(step)

    def _is_final(self, step: Step, failure: FailureKind, *, last: bool) -> bool:
        return last or not ({str(failure), "any"} & step.retry.only)

    async def _act(self, step: Step, *, last: bool) -> FailureKind | None:
        """One attempt; None when it worked."""
        started, action = self._desk.ground.now(), ACTIONS[step.uses]
        try:
            given = arguments_of(step, self._desk.scope())
        except ExpressionError as exc:
            self._desk.write(E.STEP_INTENT, {"step": step.id, "uses": step.uses, "do": {}})
            return self._failed(step, ActionFailed(str(exc)), started, last=True)
        self._desk.write(
            E.STEP_INTENT,
            {"step": step.id, "uses": step.uses, "safety": step.safety.value, "do": given},
        )
        try:
            async with asyncio.timeout(step.timeout_s):
                done, changed = await self._make_so(action, given, step)
        except TimeoutError:
            late = ActionFailed(f"not done within {step.timeout_s:g} s", FailureKind.TIMEOUT)
            return self._failed(step, late, started, last=last)
        except ActionFailed as exc:
            return self._failed(step, exc, started, last=last)
        except LockedError:
            raise
        except BrctlError as exc:
            wrong = ActionFailed(str(exc), FailureKind.SCHEDULER)
            return self._failed(step, wrong, started, last=last)
        self._desk.write(
            E.STEP_RESULT,
            {
                "step": step.id,
                "ok": True,
                "changed": changed,
                "out": done.out,
                "say": done.say,
                "seconds": self._desk.since(started),
            },
        )
        return None

    async def _make_so(
        self, action: Action, given: Mapping[str, Json], step: Step
    ) -> tuple[Done, bool]:
        """Look, act only when it is needed, look again."""
        seen = await action.observe(self._desk.site, given)
        if seen.done:
            return Done(seen.out, changed=False, say=f"{seen.say} (already)"), False
        done = await action.apply(self._desk.site, given)
        if step.safety is not Safety.READ:
            after = await action.confirm(self._desk.site, given)
            if after.done is False:
                raise ActionFailed(f"was done but does not show: {after.say}")
        if step.verify is not None:
            await self._verify(step.verify)
        return done, done.changed

    async def _verify(self, hook: Hook) -> None:
        """A second opinion the playbook asks for; when it says no, the step has failed."""
        given = expand(hook.arguments, self._desk.scope())
        await ACTIONS[hook.uses].apply(self._desk.site, given)  # type: ignore[arg-type]  # a mapping stays one

    def _failed(
        self, step: Step, error: ActionFailed, started: datetime, *, last: bool
    ) -> FailureKind:
        final = self._is_final(step, error.kind, last=last)
        self._desk.write(
            E.STEP_RESULT,
            {
                "step": step.id,
                "ok": False,
                "changed": False,
                "error": str(error),
                "kind": error.kind.value,
                "final": final,
                "then": step.on_failure.value if final else "retry",
                "seconds": self._desk.since(started),
            },
        )
        return error.kind

    async def _after_failure(self, step: Step) -> None:
        error = f"{step.id}: {self._desk.record.steps[step.id].error}"
        if step.on_failure is OnFailure.CONTINUE:
            return
        if step.on_failure is OnFailure.ROLLBACK:
            raise RunEnds(await roll_back(self._desk))
        if step.on_failure is OnFailure.STOP and not self._desk.anything_changed():
            raise RunEnds(Ending("rolled_back", ExitCode.ROLLED_BACK, error))
        raise RunEnds(Ending("needs_human", ExitCode.NEEDS_HUMAN, error))

    async def run_hooks(self, ending: Ending) -> None:
        """Hooks run beside the steps; what becomes of them never changes a run's result."""
        hooks = list(self._desk.playbook.always)
        if ending.exit_code in (ExitCode.ROLLED_BACK, ExitCode.NEEDS_HUMAN):
            hooks = [*self._desk.playbook.on_failure, *hooks]
        for hook in hooks:
            try:
                given = expand(hook.arguments, self._desk.scope())
                async with asyncio.timeout(HOOK_TIMEOUT_S):
                    done = await ACTIONS[hook.uses].apply(self._desk.site, given)  # type: ignore[arg-type]  # a mapping stays one
                fields: dict[str, Json] = {"uses": hook.uses, "ok": True, "say": done.say}
            except (ActionFailed, BrctlError, ExpressionError, TimeoutError, OSError) as exc:
                fields = {"uses": hook.uses, "ok": False, "error": str(exc)}
            self._desk.write(E.HOOK_RESULT, fields)
