"""Carry out one run: intent on disk, act, result on disk; undo, settle and stop by the same rule.

Nothing here is remembered outside the journal. Killing this process at any line and starting it
again continues the run: a step in doubt is settled by looking at the world.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from brctl.actions.base import ACTIONS
from brctl.actions.contract import Action, ActionFailed, Done, FailureKind, Seen
from brctl.engine.ground import Ground
from brctl.engine.guarding import FORWARD_ONLY, Guarding, refusal
from brctl.engine.planning import need_of, skip_reason
from brctl.engine.run_files import Request, RunInputs, load_approvals
from brctl.engine.run_site import RunSite
from brctl.journal.locks import Lease, Leases
from brctl.journal.store import Journal
from brctl.model.errors import BrctlError, LockedError
from brctl.model.event import Event, EventType
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.playbook import Hook, Json, Need, OnExpire, OnFailure, Playbook, Safety, Step
from brctl.model.units import parse_rfc3339, rfc3339
from brctl.playbook.approvals import PEOPLE, confirmation_text, is_confirmed
from brctl.playbook.expressions import ExpressionError, Scope
from brctl.playbook.plan import arguments_of, nodes_named, scope_of, takes_found_nodes
from brctl.playbook.replay import RunRecord, apply_event
from brctl.playbook.steps import StepState
from brctl.playbook.templates import expand

E = EventType
UNDOABLE = (StepState.DONE, StepState.FAILED, StepState.UNCERTAIN, StepState.UNDOING,
            StepState.UNDO_FAILED)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run, or this part of it, ends."""

    result: str
    exit_code: ExitCode
    why: str = ""


class RunEnds(Exception):  # noqa: N818 - an outcome that stops the loop, not a mistake
    """Stop the steps here, with this ending."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.result)
        self.ending = ending


class Executor:
    """One run in one process; `journal` is open and the run is owned."""

    def __init__(
        self,
        ground: Ground,
        playbook: Playbook,
        inputs: RunInputs,
        request: Request,
        digest: str,
        journal: Journal,
        record: RunRecord,
        site: RunSite,
    ) -> None:
        self._ground = ground
        self._playbook = playbook
        self._inputs = inputs
        self._request = request
        self._digest = digest
        self._journal = journal
        self._record = record
        self._site = site
        self._guarding = Guarding(ground, playbook, site)
        self._leases = Leases(ground.state_dir)
        self.lease: Lease | None = None
        self.interrupted: ExitCode | None = None

    # -- writing ---------------------------------------------------------------------------------

    def write(self, kind: EventType, fields: Mapping[str, Json]) -> Event:
        """Record an event and carry it into the record; a fenced run can do neither."""
        if self.lease is not None:
            self._leases.verify(self.lease)
        event = self._journal.append(kind, self._ground.now(), fields)
        apply_event(self._record, event)
        return event

    def _scope(self) -> Scope:
        i = self._inputs
        return scope_of(i.inputs, i.verdict, i.job, self._site.run, self._record)

    # -- the run ---------------------------------------------------------------------------------

    async def run(self) -> Ending:
        """Everything from where the journal stands to an ending."""
        try:
            if self._request.undo and not self._record.rolling_back:
                self.write(E.ROLLBACK_STARTED, {"because": f"asked for by {self._request.by}"})
            if self._record.expired:
                return await self._expire()
            if self._record.rolling_back:
                return await self._roll_back()
            await self._check_guards("resume" if self._any_started() else "start")
            for step in self._playbook.steps:
                if self._playbook.approval and step.id == self._playbook.approval.gate_before:
                    await self._pass_gate(step)
                await self._take(step)
                self._stop_when_asked()
        except RunEnds as exc:
            return exc.ending
        return Ending("ok", ExitCode.OK)

    def _any_started(self) -> bool:
        return any(step.state is not StepState.PENDING for step in self._record.steps.values())

    def _anything_changed(self) -> bool:
        """Whether something may be different because of this run."""
        risky = (StepState.UNCERTAIN, StepState.FAILED, StepState.UNDO_FAILED)
        return any(
            (step.changed and step.state not in (StepState.UNDONE, StepState.SKIPPED))
            or (step.state in risky and self._playbook.step(name).safety is not Safety.READ)
            for name, step in self._record.steps.items()
        )

    def _stop_when_asked(self) -> None:
        if self.interrupted is not None:
            raise RunEnds(Ending("interrupted", self.interrupted, "stopped after the current step"))

    async def _check_guards(self, moment: str, *, takes: bool = False) -> None:
        kinds = FORWARD_ONLY if self._record.past_no_return(self._playbook) else None
        if kinds is not None and takes:
            kinds |= {"blast_radius"}
        results = await self._guarding.check(self._inputs, self._scope(), kinds)
        said = refusal(results)
        self.write(
            E.GUARDS_CHECKED,
            {
                "when": moment,
                "ok": said is None,
                "guards": [
                    {"guard": r.kind, "ok": r.ok, "says": r.sentence, "origin": r.origin}
                    for r in results
                ],
            },
        )
        if said is None:
            return
        if self._anything_changed():
            raise RunEnds(Ending("waiting", ExitCode.WAITING, f"paused by {said}"))
        raise RunEnds(Ending("refused", ExitCode.REFUSED, f"refused by {said}"))

    # -- approval --------------------------------------------------------------------------------

    async def _pass_gate(self, step: Step) -> None:
        if self._record.steps[step.id].state not in (StepState.PENDING, StepState.FAILED):
            return
        if self._is_late():
            self.write(E.APPROVAL_EXPIRED, {"step": step.id, "asked_at": self._record.asked_at})
            raise RunEnds(await self._expire())
        need = need_of(self._ground, self._playbook, self._scope())
        await self._collect_answers(need)
        given = self._record.approvals.get(self._digest, set())
        if len(given) < PEOPLE[need]:
            await self._ask(step, need, len(given))
        if given:
            await self._check_guards("after approval")

    def _is_late(self) -> bool:
        approval, asked_at = self._playbook.approval, self._record.asked_at
        if approval is None or not asked_at:
            return False
        waited_s = (self._ground.now() - parse_rfc3339(asked_at)).total_seconds()
        return waited_s > approval.expires_s

    async def _expire(self) -> Ending:
        """Nobody said yes in time: keep the cordon and free the standbys, or take all back."""
        approval = self._playbook.approval
        if approval is not None and approval.on_expire is OnExpire.ABORT:
            ending = await self._roll_back()
            if ending.exit_code is ExitCode.NEEDS_HUMAN:
                return ending
            return Ending("expired", ExitCode.WAITING, "the approval expired; all was taken back")
        for step in reversed(self._playbook.steps):
            held = step.uses == "standby.acquire"
            if (
                held
                and self._record.steps[step.id].state in UNDOABLE
                and not await self._undo(step)
            ):
                return Ending("needs_human", ExitCode.NEEDS_HUMAN, f"{step.id} was not released")
        why = "the approval expired; standbys are free again, cordons stay"
        return Ending("expired", ExitCode.WAITING, why)

    async def _collect_answers(self, need: Need) -> None:
        for answer in load_approvals(self._site.run_dir):
            if answer.plan != self._digest:
                continue
            if not answer.yes:
                self.write(E.APPROVAL_DENIED, {"by": answer.by})
                raise RunEnds(await self._roll_back())
            self._approve(answer.by, "approve")
        if PEOPLE[need] and is_confirmed(
            self._playbook, self._request.typed, yes=self._request.yes, expected=self._expected()
        ):
            self._approve(self._request.by, "command line")

    def _approve(self, by: str, how: str) -> None:
        if by not in self._record.approvals.get(self._digest, set()):
            self.write(E.APPROVAL_GIVEN, {"by": by, "how": how, "plan": self._digest})

    def _expected(self) -> str:
        nodes = nodes_named(self._playbook, self._inputs.inputs)
        return confirmation_text(self._playbook, len(nodes), str(self._inputs.job["name"]))

    async def _ask(self, step: Step, need: Need, given: int) -> None:
        self.write(
            E.APPROVAL_ASKED,
            {
                "step": step.id,
                "need": PEOPLE[need],
                "given": given,
                "answer": self._expected(),
                "plan": self._digest,
                "asked_at": rfc3339(self._ground.now()),
            },
        )
        why = f"{PEOPLE[need] - given} more people must approve before {step.id}"
        raise RunEnds(Ending("waiting", ExitCode.WAITING, why))

    # -- one step --------------------------------------------------------------------------------

    async def _take(self, step: Step) -> None:
        record = self._record.steps[step.id]
        if record.state is StepState.UNCERTAIN:
            await self._settle(step)
        if step.id in self._record.forgiven or record.state in (StepState.DONE, StepState.SKIPPED):
            return
        try:
            reason = skip_reason(step, self._scope())
        except ExpressionError as exc:
            reason = f"its condition cannot be evaluated: {exc}"
        if reason is not None and record.state is StepState.PENDING:
            self.write(E.STEP_SKIPPED, {"step": step.id, "why": reason or "condition unknown"})
            return
        if step.safety in (Safety.DISRUPTIVE, Safety.DESTRUCTIVE) or takes_found_nodes(step):
            await self._check_guards(f"before {step.id}", takes=takes_found_nodes(step))
        await self._attempt(step)

    async def _settle(self, step: Step) -> None:
        """The last process died inside this step: what does the world say?"""
        given = self._record.steps[step.id].given
        if step.safety is Safety.READ:
            return
        try:
            seen = await ACTIONS[step.uses].observe(self._site, given)
        except (ActionFailed, BrctlError) as exc:
            seen = Seen(None, say=str(exc))
        if seen.done:
            say = f"was in doubt; looked: {seen.say}"
            self.write(E.STEP_SETTLED, {"step": step.id, "out": seen.out, "say": say})

    async def _attempt(self, step: Step) -> None:
        """Try until it works, the retries are used up, or the failure is of another kind."""
        record, delay_s = self._record.steps[step.id], step.retry.backoff_s
        for tried in range(step.retry.times + 1):
            failure = await self._act(step, last=tried == step.retry.times)
            if failure is None:
                return
            if record.error and self._is_final(step, failure, last=tried == step.retry.times):
                break
            await self._site.pause(delay_s)
            delay_s *= step.retry.factor
        await self._after_failure(step)

    def _is_final(self, step: Step, failure: FailureKind, *, last: bool) -> bool:
        return last or not ({str(failure), "any"} & step.retry.only)

    async def _act(self, step: Step, *, last: bool) -> FailureKind | None:
        """One attempt; None when it worked."""
        started, action = self._ground.now(), ACTIONS[step.uses]
        try:
            given = arguments_of(step, self._scope())
        except ExpressionError as exc:
            self.write(E.STEP_INTENT, {"step": step.id, "uses": step.uses, "do": {}})
            return self._failed(step, ActionFailed(str(exc)), started, last=True)
        self.write(
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
        self.write(
            E.STEP_RESULT,
            {
                "step": step.id,
                "ok": True,
                "changed": changed,
                "out": done.out,
                "say": done.say,
                "seconds": self._since(started),
            },
        )
        return None

    async def _make_so(
        self, action: Action, given: Mapping[str, Json], step: Step
    ) -> tuple[Done, bool]:
        """Look, act only when it is needed, look again."""
        seen = await action.observe(self._site, given)
        if seen.done:
            return Done(seen.out, changed=False, say=f"{seen.say} (already)"), False
        done = await action.apply(self._site, given)
        if step.safety is not Safety.READ:
            after = await action.confirm(self._site, given)
            if after.done is False:
                raise ActionFailed(f"was done but does not show: {after.say}")
        return done, done.changed

    def _failed(
        self, step: Step, error: ActionFailed, started: datetime, *, last: bool
    ) -> FailureKind:
        final = self._is_final(step, error.kind, last=last)
        self.write(
            E.STEP_RESULT,
            {
                "step": step.id,
                "ok": False,
                "changed": False,
                "error": str(error),
                "kind": error.kind.value,
                "final": final,
                "then": step.on_failure.value if final else "retry",
                "seconds": self._since(started),
            },
        )
        return error.kind

    async def _after_failure(self, step: Step) -> None:
        error = f"{step.id}: {self._record.steps[step.id].error}"
        if step.on_failure is OnFailure.CONTINUE:
            return
        if step.on_failure is OnFailure.ROLLBACK:
            raise RunEnds(await self._roll_back())
        if step.on_failure is OnFailure.STOP and not self._anything_changed():
            raise RunEnds(Ending("rolled_back", ExitCode.ROLLED_BACK, error))
        raise RunEnds(Ending("needs_human", ExitCode.NEEDS_HUMAN, error))

    def _since(self, started: datetime) -> float:
        return round((self._ground.now() - started).total_seconds(), 3)

    # -- undo ------------------------------------------------------------------------------------

    async def _roll_back(self) -> Ending:
        """Undo newest first, down to the last step that cannot be undone."""
        if not self._record.rolling_back:
            self.write(E.ROLLBACK_STARTED, {"because": self._record.failed_error})
        for step in reversed(self._playbook.steps):
            record = self._record.steps[step.id]
            if record.state not in UNDOABLE:
                continue
            if step.safety is Safety.DESTRUCTIVE:
                why = f"{step.id} cannot be undone: {self._record.failed_error}".rstrip(": ")
                return Ending("needs_human", ExitCode.NEEDS_HUMAN, why)
            if step.undo is not None and not await self._undo(step):
                why = f"{step.id} could not be undone: {record.error}"
                return Ending("needs_human", ExitCode.NEEDS_HUMAN, why)
        if self._record.denied_by:
            return Ending("waiting", ExitCode.WAITING, f"denied by {self._record.denied_by}")
        because = self._record.failed_error or f"asked for by {self._request.by}"
        failed = f"{self._record.failed_step}: " if self._record.failed_step else ""
        return Ending("rolled_back", ExitCode.ROLLED_BACK, failed + because)

    async def _undo(self, step: Step) -> bool:
        given = self._record.steps[step.id].given
        self.write(E.UNDO_INTENT, {"step": step.id, "do": given})
        try:
            async with asyncio.timeout(step.timeout_s):
                done = await self._take_back(step, given)
        except (TimeoutError, ActionFailed, BrctlError) as exc:
            if isinstance(exc, LockedError):
                raise
            error = str(exc) or f"not undone within {step.timeout_s:g} s"
            self.write(E.UNDO_RESULT, {"step": step.id, "ok": False, "error": error})
            return False
        self.write(
            E.UNDO_RESULT, {"step": step.id, "ok": True, "changed": done.changed, "say": done.say}
        )
        return True

    async def _take_back(self, step: Step, given: Mapping[str, Json]) -> Done:
        if isinstance(step.undo, Hook):
            arguments = expand(step.undo.arguments, self._scope())
            return await ACTIONS[step.undo.uses].apply(self._site, arguments)  # type: ignore[arg-type]  # a mapping stays one
        return await ACTIONS[step.uses].undo(self._site, given)

    # -- hooks -----------------------------------------------------------------------------------

    async def run_hooks(self, ending: Ending) -> None:
        """Hooks run beside the steps; what becomes of them never changes a run's result."""
        hooks = list(self._playbook.always)
        if ending.exit_code in (ExitCode.ROLLED_BACK, ExitCode.NEEDS_HUMAN):
            hooks = [*self._playbook.on_failure, *hooks]
        for hook in hooks:
            try:
                given = expand(hook.arguments, self._scope())
                async with asyncio.timeout(30):
                    done = await ACTIONS[hook.uses].apply(self._site, given)  # type: ignore[arg-type]  # a mapping stays one
                fields: dict[str, Json] = {"uses": hook.uses, "ok": True, "say": done.say}
            except (ActionFailed, BrctlError, ExpressionError, TimeoutError, OSError) as exc:
                fields = {"uses": hook.uses, "ok": False, "error": str(exc)}
            self.write(E.HOOK_RESULT, fields)

    def describe_taken(self) -> tuple[str, ...]:
        """Nodes this run took out of service and did not give back."""
        taken: list[str] = []
        for name, record in self._record.steps.items():
            if self._playbook.step(name).uses == "node.cordon" and record.state is StepState.DONE:
                value = record.out.get("cordoned")
                taken += [str(n) for n in value] if isinstance(value, list) else []
        return tuple(dict.fromkeys(taken))

    def summary(self) -> str:
        """The nodes the run is about, folded."""
        return fold(nodes_named(self._playbook, self._inputs.inputs))
