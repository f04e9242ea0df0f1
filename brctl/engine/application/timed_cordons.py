"""Cordons with an end (`brctl cordon --ttl`): cron's sweep lifts them once their nodes are well.

When one ends stands in the inputs of the run that made it. The scheduler's reason shows it to
people; it is not believed, because others may write there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from brctl.backends.contract import Cordon
from brctl.engine.application.by_hand import standing_against
from brctl.engine.application.fix import start_planned
from brctl.engine.application.runs import find_playbook, request_for
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.notify_runs import Say
from brctl.engine.runs.context import run_context
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.run_files import load_inputs
from brctl.engine.sweeps.history import SweepHistory
from brctl.journal.store import run_dirs
from brctl.model.errors import BrctlError, ConfigError
from brctl.model.nodeset import fold
from brctl.model.runs.result import RunState
from brctl.model.sweeps.sweep import Sweep
from brctl.model.units import parse_rfc3339, rfc3339
from brctl.playbook.run import Run
from brctl.view.text import printable

UNCORDON = "uncordon"
_OWN_RUN = re.compile(r"brctl:(R-\d+)")


_NOTHING_DONE = (RunState.LOCKED, RunState.INTERRUPTED, RunState.LOST)


@dataclass(frozen=True, slots=True)
class Ended:
    """A cordon that is over.

    Attributes:
        until: Its end.
        held_by: The newest run that has to do with the node since, and its state; "" for none.
        since: When that became so, which is told once.
    """

    until: datetime
    held_by: str
    since: datetime


async def lift_ended(controller: Controller, swept: Sweep, say: Say) -> None:
    """Give back the nodes of this sweep whose cordon is over and against which nothing stands.

    Any other stays cordoned; why is told by the first sweep after its end, not by each.
    """
    try:
        ended = ended_cordons(
            await controller.backend.cordons(), run_dirs(controller.state_dir), controller.now()
        )
        well: list[str] = []
        for node in sorted(ended.keys() & {each.node for each in swept.nodes}):
            over = ended[node]
            problem = over.held_by or await _problem(controller, node)
            if not problem:
                well.append(node)
            elif _is_new(controller, swept, over.since):
                was = f"the cordon of {node} was to end at {rfc3339(over.until)}"
                say(f"{was} and stays: {printable(problem)}; then: brctl uncordon {node}")
        if well:
            await _uncordon(controller, well, say)
    except BrctlError as exc:
        say(f"warning: cordons that are over were not lifted: {exc}")


def ended_cordons(
    cordons: Mapping[str, Cordon], dirs: Sequence[Path], at: datetime
) -> Mapping[str, Ended]:
    """Nodes whose cordon is over.

    A run that named the node since has the last word: another cordon, a swap.
    """
    by_name = {path.name: index for index, path in enumerate(dirs)}
    found: dict[str, Ended] = {}
    for node, cordon in cordons.items():
        own = _OWN_RUN.fullmatch(cordon.owner)
        if own is None or own[1] not in by_name:
            continue
        index = by_name[own[1]]
        until = _until(dirs[index])
        if until and until <= at:
            found[node] = _ended(node, until, dirs[index + 1 :])
    return found


def _ended(node: str, until: datetime, later: Sequence[Path]) -> Ended:
    """Held by no run, or by the newest of those after the cordon's own that names the node."""
    for path in reversed(later):
        try:
            run = read_run(path)
        except ConfigError:
            return Ended(until, f"{path.name} cannot be read, and may be about it", until)
        if node in run.nodes and not _came_to_nothing(run):
            held = f"{run.name} ({run.playbook.name}, {run.state}) has to do with it since"
            return Ended(until, held, max(until, run.ended_at or run.began_at or until))
    return Ended(until, "", until)


def _came_to_nothing(run: Run) -> bool:
    """Whether it was to give nodes back, as cron does, and is over before it did anything."""
    return run.playbook.name == UNCORDON and run.state in _NOTHING_DONE and not run.open


def _until(run_dir: Path) -> datetime | None:
    try:
        text = load_inputs(run_dir).inputs.get("until")
        return parse_rfc3339(text) if text and isinstance(text, str) else None
    except (BrctlError, OSError, ValueError):
        return None


async def _problem(controller: Controller, node: str) -> str:
    found = await standing_against(controller.settings, [node], look=False)
    return "; ".join(found.lines)


def _is_new(controller: Controller, swept: Sweep, since: datetime) -> bool:
    before = SweepHistory(controller.state_dir).last_success_at(swept.id)
    return before is None or before < since


async def _uncordon(controller: Controller, nodes: Sequence[str], say: Say) -> None:
    settings, context = controller.settings, run_context(controller)
    playbook = find_playbook(settings.library_dirs, UNCORDON)
    values = {"nodes": list(nodes), "owner": "brctl", "note": "the time of its cordon is over"}
    prepared = await prepare(context, playbook, None, values)
    run_dir = await start_planned(context, settings, prepared, request_for(settings, yes=True))
    why = "the time of its cordon is over, and nothing stands against it"
    say(f"{run_dir.name} starts to give back {fold(nodes)}: {why}")
