"""Ask the guards during a run, write down what they said, and stop the run when one refuses."""

from brctl.engine.runs.guard_facts import FORWARD_ONLY, Guarding, refusal
from brctl.engine.runs.session import Ending, RunEnds, RunSession
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import RunState
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
        results = await self._guarding.check(
            *session.guarded(node), session.takes(), kinds, session.takes_at_once(node)
        )
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
        session.write(EventType.GUARDS_CHECKED, {**fields, "node": node} if node else fields)
        if said is None:
            return "; ".join(r.sentence for r in results if node in r.skips)
        if session.anything_changed():
            raise RunEnds(Ending(RunState.WAITING, f"paused by {said}"))
        raise RunEnds(Ending(RunState.REFUSED, f"refused by {said}"))
