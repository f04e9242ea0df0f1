"""The commands that take back what a finished run did.

A rollback ends at the newest step that cannot be undone. Beyond it the way back is another change
of the same kind: a swap is undone by a swap back.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from brctl.model.nodeset import fold
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
    commands = (f"brctl uncordon {out}", f"brctl swap {came_in} --with {out} -m 'undo {run}'")
    return WayBack(commands, by_another_change=True)


def _names(step: StepRecord, key: str) -> str:
    value = step.arguments.get(key)
    if isinstance(value, str):
        return f"'{value}'" if "[" in value else value
    if not isinstance(value, Sequence):
        return ""
    folded = fold(map(str, value))
    return f"'{folded}'" if "[" in folded else folded
