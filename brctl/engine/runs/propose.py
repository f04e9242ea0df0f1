"""What comes next for a verdict: the decision tree, told what was tried already.

`dx`, `why`, the terminal's screens, pages and `fix` all ask here, so that they never differ.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.incidents.verdict_store import load_all
from brctl.engine.runs.run_files import (
    INPUTS,
    frozen_playbook,
    load_inputs,
    load_result,
)
from brctl.journal.code_ledger import CodeLedger, ledger_dir
from brctl.journal.store import run_dirs
from brctl.model.fault import Branch, FaultClass
from brctl.model.runs.result import PastRun, RunState
from brctl.model.verdict import Verdict
from brctl.playbook.recommend import case_of, with_move
from brctl.playbook.steps import StepState
from brctl.playbook.tree import TREE, Incident, Move, branch_of, next_move

ALERT_WINDOW = timedelta(minutes=5)
ALERT_SPACING = timedelta(seconds=30)
"""The paper inspects networks every 30 s: looking twice in a moment is one alert seen twice."""

INCIDENT_WINDOW = timedelta(hours=1)
"""A job that fails again within this time after a run has the same trouble still."""

_ABOUT_NODES = frozenset(row.playbook for row in TREE if row.nodes)
"""Playbooks that act on the suspects: for other suspects they were not tried."""


def with_next_move(state_dir: Path, context: str, verdict: Verdict, now: datetime) -> Verdict:
    """The verdict with the move that comes next now."""
    return with_move(verdict, propose(state_dir, context, verdict, now))


def propose(state_dir: Path, context: str, verdict: Verdict, now: datetime) -> Move:
    """The move of the tree that comes next now."""
    incident = Incident(
        tried_for(state_dir, verdict, now),
        alerts_on(state_dir, verdict),
        has_change(state_dir, context, verdict.job),
    )
    return next_move(case_of(verdict), incident)


def tried_for(state_dir: Path, verdict: Verdict, now: datetime) -> tuple[str, ...]:
    """Playbooks that brought this job up again in this incident, and yet it failed again."""
    tried = []
    for run_dir in run_dirs(state_dir):
        result = load_result(run_dir) if (run_dir / INPUTS).exists() else None
        if result is None or now - result.ended_at > INCIDENT_WINDOW:
            continue
        about = load_inputs(run_dir).verdict
        if _is_about(result, about, verdict) and _came_through(run_dir, result):
            tried.append(result.playbook)
    return tuple(dict.fromkeys(tried))


def _is_about(result: PastRun, about: object, verdict: Verdict) -> bool:
    said = about if isinstance(about, dict) else {}
    nodes = sorted(map(str, _list(said.get("suspects"))))
    if result.job != verdict.job:
        return False
    if result.playbook in _ABOUT_NODES or not verdict.job:
        return nodes == sorted(verdict.nodes)
    return _is_users(str(said.get("class"))) is _is_users(str(verdict.fault))


def _is_users(fault: str) -> bool:
    """The user branch goes its own way; all others climb the same ladder when they fail again."""
    return fault in list(FaultClass) and branch_of(FaultClass(fault)) is Branch.USER


def _came_through(run_dir: Path, result: PastRun) -> bool:
    """It ended well, or it restarted the job and training did not come: that was a try as well."""
    return result.result is RunState.OK or any(
        result.steps.get(step) == StepState.DONE.value for step in _restarts(run_dir)
    )


def _restarts(run_dir: Path) -> Iterator[str]:
    return (step.id for step in frozen_playbook(run_dir).steps if step.uses == "job.restart")


def alerts_on(state_dir: Path, verdict: Verdict) -> int:
    """How often the network of these nodes failed within five minutes, this time included."""
    if branch_of(verdict.fault) is not Branch.NETWORK:
        return 1
    moments = {
        stored.verdict.decided_at
        for stored in load_all(state_dir)
        if branch_of(stored.verdict.fault) is branch_of(verdict.fault)
        and set(stored.verdict.nodes) == set(verdict.nodes)
        and abs(stored.verdict.decided_at - verdict.decided_at) <= ALERT_WINDOW
    }
    counted: list[datetime] = []
    for moment in sorted({*moments, verdict.decided_at}):
        if not counted or moment - counted[-1] >= ALERT_SPACING:
            counted.append(moment)
    return len(counted)


def has_change(state_dir: Path, context: str, job: str) -> bool:
    """Whether a code change of the job is on record that can be rolled back."""
    if not job:
        return False
    return CodeLedger(ledger_dir(state_dir, context, job)).read().current is not None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
