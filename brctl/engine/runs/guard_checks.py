"""Ask the guards during a run, write down what they said, and stop the run when one refuses.

Between what they say and the line of the journal that claims the nodes, no other run of this state
directory can ask: two runs together do not pass a limit that each of them keeps (decision 0156).
"""

from collections.abc import Sequence

from brctl.engine.runs.guard_facts import FORWARD_ONLY, Guarding, refusal
from brctl.engine.runs.session import Ending, RunEnds, RunSession
from brctl.journal.locks import claiming
from brctl.model.runs.event import EventType
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import RunState
from brctl.playbook.guards import BUILT_IN
from brctl.playbook.node_runs import ONLY


class GuardChecks:
    """The guards of one run's process."""

    def __init__(self, session: RunSession) -> None:
        self._session = session
        self._guarding = Guarding(
            session.context, session.playbook, session.record, session.request.override
        )

    async def check(self, moment: str, *, node: str = ONLY, takes: bool = False) -> str:
        """Ask them about one node of `for_each`, or about all that is still to do.

        Returns:
            Why this node is passed over; "" when it is not.

        Raises:
            RunEnds: One refuses: nothing has changed yet, or the run pauses.
        """
        session = self._session
        kinds = FORWARD_ONLY if session.record.past_no_return(session.playbook, node) else None
        if kinds is not None and takes:
            kinds |= {"blast_radius"}
        gathered = await self._guarding.gather(session.guarded(node, kinds))
        with claiming(session.context.state_dir):
            results = self._guarding.decide(gathered)
            problem = self._record(moment, node, results)
        if problem is None:
            return "; ".join(r.sentence for r in results if node in r.skips)
        if session.anything_changed():
            raise RunEnds(Ending(RunState.WAITING, f"paused by {problem}"))
        raise RunEnds(Ending(RunState.REFUSED, f"refused by {problem}"))

    def _record(self, moment: str, node: str, results: Sequence[GuardResult]) -> str | None:
        """Write down what they said; where they let nodes be taken, that is the run's claim."""
        said = refusal(results)
        rows: list[Json] = [
            {
                "guard": r.kind,
                "ok": r.ok,
                "says": r.sentence,
                "origin": r.origin,
                "overridden_by": r.overridden_by or None,
            }
            for r in results
        ]
        fields: dict[str, Json] = {"when": moment, "ok": said is None, "guards": rows}
        if said is None and any(r.kind == BUILT_IN.kind for r in results):
            fields["claims"] = list(self._session.takes())
        self._session.write(EventType.GUARDS_CHECKED, {**fields, "node": node} if node else fields)
        return said
