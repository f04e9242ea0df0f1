"""A person put a node back into service while a run was busy with it: what is still to do, is not.

Whoever uncordons a node knows something that the verdict did not. So before every step that changes
something, the run looks whether the nodes it cordoned still are; another person's cordon in place
of its own is no uncordon.
"""

from brctl.engine.runs.session import Ending, RunEnds, RunSession
from brctl.model.errors import BrctlError
from brctl.model.nodeset import fold
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json, Safety, Step
from brctl.model.runs.result import RunState
from brctl.playbook.node_runs import instance_of
from brctl.playbook.steps import StepState

_TAKES, _GIVES_BACK = "node.cordon", "node.uncordon"


class UncordonWatch:
    """What people did to the nodes of one node run while the run went on."""

    def __init__(self, session: RunSession, node: str) -> None:
        self._session = session
        self._node = node
        self._reported = ""

    async def before(self, step: Step) -> str:
        """Why a node run of `for_each` must not go on to this step; "" when it may.

        Raises:
            RunEnds: The run has no node runs: all of it is taken back.
        """
        lifted = await self._lifted() if step.safety is not Safety.READ else ()
        if not lifted:
            return ""
        held_by = self._session.run.name
        why = f"somebody put {fold(lifted)} back into service while {held_by} held it"
        if self._session.record.past_no_return(self._session.playbook, self._node):
            self._report(
                f"{why}; the job is stopped already, so the run brings it back all the same"
            )
            return ""
        if self._node:
            return why
        self._session.write(EventType.ROLLBACK_STARTED, {"because": why})
        raise RunEnds(Ending(RunState.ROLLED_BACK, why))

    def _report(self, text: str) -> None:
        """Once is enough."""
        if text != self._reported:
            self._reported = text
            self._session.write(EventType.NOTE, {"text": text})

    async def _lifted(self) -> tuple[str, ...]:
        own = self._nodes_of(_TAKES, "cordoned")
        own -= self._nodes_of(_GIVES_BACK, "uncordoned")
        if not own:
            return ()
        try:
            cordons = await self._session.context.backend.cordons()
        except BrctlError:
            # Nobody can tell now; a step that needs the scheduler fails by itself.
            return ()
        return tuple(sorted(n for n in own if n not in cordons or not cordons[n].lasting))

    def _nodes_of(self, verb: str, key: str) -> set[str]:
        """What the steps of a verb that are done say they did, in this node run."""
        found: list[Json] = []
        for step in self._session.playbook.steps:
            record = self._session.record.steps[instance_of(step.id, self._node)]
            value = record.out.get(key) if step.uses == verb else None
            if record.state is StepState.DONE and isinstance(value, list):
                found += value
        return {str(name) for name in found}
