"""What `fix` does next for a verdict: the decision tree, told by what was tried already."""

from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.run_files import INPUTS, load_inputs, load_result
from brctl.engine.verdict_store import load_all
from brctl.journal.store import run_dirs
from brctl.model.verdict import Verdict
from brctl.playbook.tree import Row, next_move

ALERT_WINDOW = timedelta(minutes=5)
INCIDENT_WINDOW = timedelta(hours=1)
"""A fault of the same class on the same nodes within this time is the same incident."""


def propose(state_dir: Path, verdict: Verdict, now: datetime) -> Row:
    """The row of the tree that applies now."""
    return next_move(verdict, tried_for(state_dir, verdict, now), alerts_on(state_dir, verdict))


def tried_for(state_dir: Path, verdict: Verdict, now: datetime) -> tuple[str, ...]:
    """Playbooks that ran to their end in this incident, and the fault is still there."""
    tried = []
    for run_dir in run_dirs(state_dir):
        result = load_result(run_dir) if (run_dir / INPUTS).exists() else None
        if result is None or result.result != "ok" or now - result.ended_at > INCIDENT_WINDOW:
            continue
        about = load_inputs(run_dir).verdict
        same_nodes = sorted(map(str, _list(about.get("suspects")))) == sorted(verdict.nodes)
        if about.get("class") == str(verdict.fault) and same_nodes and result.job == verdict.job:
            tried.append(result.playbook)
    return tuple(dict.fromkeys(tried))


def alerts_on(state_dir: Path, verdict: Verdict) -> int:
    """How often this fault was seen on these nodes within five minutes of the verdict."""
    return sum(
        1
        for stored in load_all(state_dir)
        if stored.verdict.fault is verdict.fault
        and set(stored.verdict.nodes) == set(verdict.nodes)
        and abs(stored.verdict.decided_at - verdict.decided_at) <= ALERT_WINDOW
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
