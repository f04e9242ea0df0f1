"""Carry out one run: intent on disk, act, result on disk.

Nothing here is remembered outside the journal. Killing this process at any line and starting it
again continues the run: a step in doubt is settled by looking at the world.
"""

import asyncio
from collections.abc import Sequence

from brctl.engine.runs.attempt import StepFailedError
from brctl.engine.runs.confirm import may_go_on
from brctl.engine.runs.guard_checks import GuardChecks
from brctl.engine.runs.session import Ending, RunEnds, RunSession
from brctl.engine.runs.undo import expire, roll_back
from brctl.engine.runs.walk import ApprovalGate, NodeRunStopsError, StopFlag, Walker
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import OnFailure
from brctl.model.runs.result import FAILED_RESULTS, NODE_FAILED, NodeResult, RunState
from brctl.playbook.node_runs import too_many_failed
from brctl.playbook.steps import StepState
from brctl.playbook.verbs import UNCONFIRMED


class Executor:
    """Walks the nodes of one run, wave by wave, from where its journal stands."""

    def __init__(self, session: RunSession) -> None:
        self._session = session
        self._checks = GuardChecks(session)
        self._gate = ApprovalGate(session, self._checks)
        self.stop = StopFlag()

    async def run(self) -> Ending:
        """Everything from where the journal stands to an ending."""
        record, request = self._session.record, self._session.request
        if request.undo and not record.rolling_back:
            because = f"asked for by {request.by}"
            self._session.write(EventType.ROLLBACK_STARTED, {"because": because})
        ending = Ending(RunState.OK)
        if not record.expired and not record.rolling_back:
            try:
                ending = await self._go_forward()
            except RunEnds as exc:
                ending = exc.ending
        if record.expired:
            return await expire(self._session)
        if record.rolling_back:
            ending = await roll_back(self._session)
        return await self._after_failure(ending)

    async def _go_forward(self) -> Ending:
        await self._checks.check("resume" if self._session.any_started() else "start")
        for wave in self._session.record.waves:
            todo = [node for node in wave if not self._session.record.node_runs[node].result]
            if todo:
                self._ask_when_too_many_failed()
                await self._walk(todo)
        return self._outcome()

    def _ask_when_too_many_failed(self) -> None:
        each, results = self._session.playbook.for_each, self._results()
        if each is None:
            return
        why = too_many_failed(each, list(results), results)
        if why:
            count = sum(result in NODE_FAILED for result in results.values())
            may_go_on(self._session, f"failed nodes {count}", why, f"go on after {count}")

    def _results(self) -> dict[str, NodeResult | None]:
        return {node: node_run.result for node, node_run in self._session.record.node_runs.items()}

    def _walker(self, node: str) -> Walker:
        return Walker(self._session, node, self._checks, self._gate, self.stop)

    async def _walk(self, nodes: Sequence[str]) -> None:
        """These nodes side by side; when one ends the run, the others finish their step first."""
        outcomes = await asyncio.gather(*(self._walk_one(node) for node in nodes))
        raised = [exc for exc in outcomes if exc and not isinstance(exc, NodeRunStopsError)]
        failures = [exc for exc in raised if isinstance(exc, StepFailedError)]
        for exc in raised:
            if not isinstance(exc, StepFailedError | RunEnds):
                raise exc
        if failures:
            raise RunEnds(self._failed(failures))
        if raised:
            raise raised[0]

    async def _walk_one(self, node: str) -> Exception | None:
        try:
            await self._walker(node).walk()
        except Exception as exc:  # noqa: BLE001 - handed on when every node run is quiet
            self.stop.run_ended = True
            return exc
        return None

    def _failed(self, failures: Sequence[StepFailedError]) -> Ending:
        why = "; ".join(str(exc) for exc in failures)
        stops = all(exc.step.on_failure is OnFailure.STOP for exc in failures)
        if stops and not self._session.anything_changed():
            return Ending(RunState.ROLLED_BACK, why)
        return Ending(RunState.NEEDS_HUMAN, why)

    def _outcome(self) -> Ending:
        """How a run ends whose node runs are all through: by the worst of them."""
        results = self._results()
        if self._session.playbook.for_each is None:
            return self._as_told()
        failed = [node for node, result in results.items() if result in NODE_FAILED]
        stuck = [node for node, result in results.items() if result is NodeResult.NEEDS_HUMAN]
        why = f"{len(failed)} of {len(results)} nodes failed: {fold(failed)}" if failed else ""
        if stuck:
            stays = f"changes stay on {fold(stuck)}"
            return Ending(RunState.NEEDS_HUMAN, f"{why}; {stays}")
        if failed and NodeResult.OK not in results.values():
            return Ending(RunState.ROLLED_BACK, f"no node got through; {why}")
        if failed:
            return Ending(RunState.PARTIAL, why)
        return Ending(RunState.OK)

    def _as_told(self) -> Ending:
        """OK; UNKNOWN where the last step could not tell of some node, and nothing proved it."""
        last = self._session.record.steps[self._session.playbook.steps[-1].id]
        nodes = last.out.get(UNCONFIRMED) if last.state is StepState.DONE else None
        if not isinstance(nodes, list) or not nodes:
            return Ending(RunState.OK)
        why = f"{fold(str(node) for node in nodes)} does not show it"
        return Ending(RunState.OK, why, ExitCode.UNKNOWN)

    async def _after_failure(self, ending: Ending) -> Ending:
        """Steps that run after a failure, in the node runs that ended the whole run."""
        if ending.result not in FAILED_RESULTS or self._session.request.undo:
            return ending
        troubles = [
            await self._walker(node).after_failure()
            for node, node_run in self._session.record.node_runs.items()
            if node_run.failed_step and not node_run.result
        ]
        why = "; ".join([ending.why, *filter(None, troubles)])
        return Ending(RunState.NEEDS_HUMAN, why) if any(troubles) else ending
