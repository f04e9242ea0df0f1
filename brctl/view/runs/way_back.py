"""The commands that take back what a finished run did.

A rollback ends at the newest step that cannot be undone. Beyond it the way back is another change
of the same kind: a swap is undone by a swap back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.nodeset import fold
from brctl.model.runs.plan import Plan, PlannedStep
from brctl.model.runs.playbook import Playbook, Safety
from brctl.model.runs.result import RunState
from brctl.playbook.run_record import RunRecord, StepRecord
from brctl.playbook.steps import StepState


@dataclass(frozen=True, slots=True)
class WayBack:
    """How a finished run is taken back.

    Attributes:
        commands: Command lines in the order they are typed; empty where nothing changed, or nobody
            knows.
        by_another_change: A rollback would end before it reaches what these take back.
    """

    commands: tuple[str, ...] = ()
    by_another_change: bool = False


NO_WAY_BACK = WayBack()


def way_back(run: str, playbook: Playbook, record: RunRecord, state: RunState) -> WayBack:
    """The way back of a run that is over."""
    done = {name: past for name, past in record.steps.items() if past.state is StepState.DONE}
    changed = [name for name, past in done.items() if past.changed and "@" not in name]
    if state is not RunState.OK or not changed:
        return NO_WAY_BACK
    by_verb = {playbook.step(name).uses: done[name] for name in changed}
    if "job.replace_nodes" in by_verb:
        return _swap_back(run, by_verb["job.replace_nodes"])
    if any(playbook.step(name).safety is Safety.DESTRUCTIVE for name in changed):
        return NO_WAY_BACK
    if set(by_verb) == {"node.cordon"}:
        return WayBack((f"brctl uncordon {_names(by_verb['node.cordon'], 'nodes')}",))
    if set(by_verb) == {"node.uncordon"}:
        nodes = _names(by_verb["node.uncordon"], "nodes")
        return WayBack((f"brctl cordon {nodes} -m 'undo {run}'",))
    return WayBack((f"brctl play rollback {run}",))


def _swap_back(run: str, swap: StepRecord) -> WayBack:
    out, came_in = _names(swap, "out"), _names(swap, "in")
    if not out or not came_in:
        return NO_WAY_BACK
    return WayBack(_swapped_back(out, came_in, run), by_another_change=True)


def _swapped_back(out: str, came_in: str, run: str) -> tuple[str, str]:
    return f"brctl uncordon {out}", f"brctl swap {came_in} --with {out} -m 'undo {run}'"


def planned_way_back(plan: Plan) -> list[str]:
    """How the run that a plan becomes would be taken back; the run has its name when it starts."""
    changing = [step for step in plan.steps if step.changes and not step.skipped]
    final = next((step for step in changing if step.safety is Safety.DESTRUCTIVE), None)
    verbs = {step.uses for step in changing}
    if not changing:
        return []
    if final is None:
        return [_UNDONE_BY.get(frozenset(verbs), ROLLBACK).format(nodes=quoted(plan.nodes))]
    until = f"until step `{final.id}`: {ROLLBACK}"
    swap = next((step for step in changing if step.uses == "job.replace_nodes"), None)
    return [until, _after_it(swap, changing) if swap else "after it nothing takes it back"]


def _after_it(swap: PlannedStep, changing: Sequence[PlannedStep]) -> str:
    out = swap.arguments.get("out")
    leaving = list(map(str, out)) if isinstance(out, Sequence) and not isinstance(out, str) else []
    came_in = [change.node for step in changing for change in step.changes if change.node]
    if not leaving or len(came_in) != len(leaving):
        return "after it: a swap back, of nodes that are known when it has run"
    return f"after it: {'; '.join(_swapped_back(quoted(leaving), quoted(came_in), RUN))}"


RUN = "RUN"
ROLLBACK = f"brctl play rollback {RUN}"
_UNDONE_BY: Mapping[frozenset[str], str] = {
    frozenset({"node.cordon"}): "brctl uncordon {nodes}",
    frozenset({"node.uncordon"}): "brctl cordon {nodes} -m 'undo'",
}


def _names(step: StepRecord, key: str) -> str:
    value = step.arguments.get(key)
    if isinstance(value, str):
        return f"'{value}'" if "[" in value else value
    return quoted(map(str, value)) if isinstance(value, Sequence) else ""


def quoted(names: Iterable[str]) -> str:
    """A node set as a shell takes it."""
    folded = fold(names)
    return f"'{folded}'" if "[" in folded else folded
