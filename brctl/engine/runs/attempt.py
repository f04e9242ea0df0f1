"""One step of one node run: settle what is in doubt, try, try again, give the result."""

import asyncio
from collections.abc import Mapping
from datetime import datetime

from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, NothingDone, Observation
from brctl.actions.registry import ACTIONS, action_of
from brctl.engine.runs.confirm import may_go_on
from brctl.engine.runs.session import RunSession
from brctl.journal.keys import Entry, Keys
from brctl.model.errors import BrctlError, LockedError, UnreachableError
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Hook, Json, OnFailure, Safety, Step
from brctl.playbook.expressions import ExpressionError
from brctl.playbook.node_runs import instance_of
from brctl.playbook.plan import KEY, arguments_of
from brctl.playbook.run_record import AFTERWARDS
from brctl.playbook.templates import expand

E = EventType


_UNSURE = (FailureKind.TRANSPORT, FailureKind.TIMEOUT)
"""Failures after which the other side may have acted all the same."""


class StepFailedError(Exception):
    """A step failed for good, and its playbook does not say to go on."""

    def __init__(self, step: Step, node: str, error: str) -> None:
        super().__init__(f"{instance_of(step.id, node)}: {error}")
        self.step = step


class StepAttempts:
    """The attempts of one step for one node."""

    def __init__(
        self, session: RunSession, step: Step, node: str, *, afterwards: bool = False
    ) -> None:
        self._session = session
        self._step = step
        self._node = node
        self._afterwards = afterwards
        self._name = instance_of(step.id, node)
        self._keys = Keys(session.context.state_dir)
        self._acting = False

    async def settle(self) -> None:
        """The last process died inside this step: what does the world say?"""
        if self._step.safety is Safety.READ:
            return
        arguments = self._session.record.steps[self._name].arguments
        earlier = self._keys.find(str(arguments[KEY])) if KEY in arguments else None
        if earlier is not None and earlier.done:
            say = f"was in doubt; known under {earlier.key}: {earlier.say}"
            self._session.write(
                E.STEP_SETTLED, {"step": self._name, "out": earlier.out, "say": say}
            )
            return
        try:
            observation = await action_of(self._step, self._name).observe(
                self._session.context, arguments
            )
        except (ActionFailed, BrctlError) as exc:
            observation = Observation(None, say=str(exc))
        if observation.done:
            say = f"was in doubt; looked: {observation.say}"
            self._session.write(
                E.STEP_SETTLED, {"step": self._name, "out": observation.out, "say": say}
            )
        elif observation.markless:
            # Any other verb is safe to repeat, by contract.
            tried = self._session.record.steps[self._name].attempts
            why = f"{self._name} was cut off, and {observation.say}"
            may_go_on(
                self._session, f"in doubt {self._name} {tried}", why, f"run {self._name} again"
            )

    async def run(self) -> None:
        """Try until it works, the retries are used up, or the failure is of another kind.

        Raises:
            StepFailedError: It failed for good.
        """
        step, delay_s = self._step, self._step.retry.backoff_s
        for tried in range(step.retry.times + 1):
            last = tried == step.retry.times
            failure = await self._act(last=last)
            if failure is None:
                return
            if self._is_final(failure, last=last):
                break
            await self._session.context.clock.pause(delay_s)
            delay_s *= step.retry.factor
        if step.on_failure is not OnFailure.CONTINUE:
            raise StepFailedError(step, self._node, self._session.record.steps[self._name].error)

    def _is_final(self, failure: FailureKind, *, last: bool) -> bool:
        return last or not ({str(failure), "any"} & self._step.retry.only)

    async def _act(self, *, last: bool) -> FailureKind | None:
        """One attempt; None when it worked."""
        step, started = self._step, self._session.context.clock.now()
        self._acting = False
        intent: dict[str, Json] = {"step": self._name, "uses": step.verb}
        try:
            arguments = arguments_of(step, self._session.scope(self._node))
        except ExpressionError as exc:
            self._session.write(E.STEP_INTENT, {**intent, "do": {}})
            return self._failed(ActionFailed(str(exc)), started, last=True)
        self._session.write(E.STEP_INTENT, {**intent, "safety": step.safety.value, "do": arguments})
        try:
            async with asyncio.timeout(step.timeout_s):
                done = await self._once(arguments)
        except TimeoutError:
            late = ActionFailed(f"not done within {step.timeout_s:g} s", FailureKind.TIMEOUT)
            return self._failed(late, started, last=last)
        except ActionFailed as exc:
            return self._failed(exc, started, last=last)
        except LockedError:
            raise
        except UnreachableError as exc:
            silent = ActionFailed(str(exc), FailureKind.TRANSPORT)
            return self._failed(silent, started, last=last)
        except BrctlError as exc:
            wrong = ActionFailed(str(exc), FailureKind.SCHEDULER)
            return self._failed(wrong, started, last=last)
        self._session.write(
            E.STEP_RESULT,
            {
                "step": self._name,
                "ok": True,
                "changed": done.changed,
                "out": done.out,
                "say": done.say,
                "seconds": self._session.since(started),
            },
        )
        return None

    async def _once(self, arguments: Mapping[str, Json]) -> ActionResult:
        """Act, unless somebody did under the same key already."""
        if KEY not in arguments:
            return await self._make_so(arguments)
        key, run = str(arguments[KEY]), self._session.run.name
        try:
            earlier = self._keys.begin(key, run, self._session.context.clock.now())
        except LockedError as exc:
            raise ActionFailed(str(exc), FailureKind.SCHEDULER) from exc
        if earlier is not None:
            say = f"{earlier.say} (already, by {earlier.run})"
            return ActionResult(earlier.out, changed=False, say=say)
        try:
            done = await self._make_so(arguments)
        except ActionFailed as exc:
            if exc.kind not in _UNSURE or not self._may_have_acted(exc):
                self._keys.forget(key, run)
            raise
        entry = Entry(
            key, run, self._session.context.clock.now(), done=True, out=done.out, say=done.say
        )
        self._keys.finish(entry)
        return done

    async def _make_so(self, arguments: Mapping[str, Json]) -> ActionResult:
        """Look, act only when it is needed, look again."""
        context, action = self._session.context, action_of(self._step, self._name)
        observation = await action.observe(context, arguments)
        if observation.done:
            return ActionResult(observation.out, changed=False, say=f"{observation.say} (already)")
        self._acting = True
        done = await action.apply(context, arguments)
        if self._step.safety is not Safety.READ:
            after = await action.confirm(context, arguments)
            if after.done is False:
                raise ActionFailed(f"was done but does not show: {after.say}")
        if self._step.verify is not None:
            await self._verify(self._step.verify)
        return done

    async def _verify(self, hook: Hook) -> None:
        """A second opinion the playbook asks for; when it says no, the step has failed."""
        try:
            arguments = expand(hook.arguments, self._session.scope(self._node))
        except ExpressionError as exc:
            raise ActionFailed(f"{hook.origin}: `verify` of step {self._step.id}: {exc}") from exc
        await ACTIONS[hook.uses].apply(self._session.context, arguments)  # type: ignore[arg-type]  # a mapping stays one

    def _failed(self, error: ActionFailed, started: datetime, *, last: bool) -> FailureKind:
        final, acted = self._is_final(error.kind, last=last), self._may_have_acted(error)
        self._session.write(
            E.STEP_RESULT,
            {
                "step": self._name,
                "ok": False,
                "changed": False,
                "acted": acted,
                "error": str(error) if acted else f"{error}; nothing was done",
                "kind": error.kind.value,
                "final": final,
                "then": self._then() if final else "retry",
                "seconds": self._session.since(started),
            },
        )
        return error.kind

    def _may_have_acted(self, error: ActionFailed) -> bool:
        return self._acting and not isinstance(error, NothingDone)

    def _then(self) -> str:
        """What the journal says comes next."""
        goes_on = self._step.on_failure is OnFailure.CONTINUE
        return AFTERWARDS if self._afterwards and not goes_on else self._step.on_failure.value
