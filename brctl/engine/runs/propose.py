"""What comes next for a verdict: the decision tree, told what was tried already.

`dx`, `why`, the terminal's screens, pages and `fix` all ask here, so that they never differ.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.incidents.verdict_store import load_all
from brctl.engine.runs.read_run import sound_runs
from brctl.journal.code_ledger import CodeLedger, ledger_dir
from brctl.model.fault import Branch, FaultClass
from brctl.model.runs.past_search import PastSearch
from brctl.model.runs.result import RunState
from brctl.model.verdict import Verdict
from brctl.playbook.node_runs import split_instance
from brctl.playbook.past_searches import searches_of
from brctl.playbook.plan import suspects_in
from brctl.playbook.recommend import case_of, with_move
from brctl.playbook.run import Run
from brctl.playbook.steps import StepState
from brctl.playbook.tree import FALLBACK, TREE, IncidentHistory, Move, branch_of, next_move

ALERT_WINDOW = timedelta(minutes=5)
ALERT_SPACING = timedelta(seconds=30)
"""The paper inspects networks every 30 s: looking twice in a moment is one alert seen twice."""

INCIDENT_WINDOW = timedelta(hours=1)
"""A job that fails again within this time after a run has the same trouble still."""

SEARCH_WINDOW = timedelta(days=1)
"""So long a search for a machine that computes wrongly is told of; it is of its moment."""

_SEARCHES_TOLD = 3

_ABOUT_NODES = frozenset(row.playbook for row in TREE if row.nodes) - frozenset(
    row.playbook for row in (*TREE, *FALLBACK) if not row.nodes
)
"""Playbooks that act on the suspects: for other suspects they were not tried."""


def with_next_move(state_dir: Path, context: str, verdict: Verdict, now: datetime) -> Verdict:
    """The verdict with the move that comes next now."""
    return with_move(verdict, propose(state_dir, context, verdict, now))


def propose(state_dir: Path, context: str, verdict: Verdict, now: datetime) -> Move:
    """The move of the tree that comes next now."""
    return next_move(case_of(verdict), incident_history(state_dir, context, verdict, now))


def incident_history(
    state_dir: Path, context: str, verdict: Verdict, now: datetime
) -> IncidentHistory:
    """What was tried and changed already, as far as it bears on what comes next."""
    tries = _tries(state_dir, verdict, now)
    return IncidentHistory(
        _names(tries),
        alerts_on(state_dir, verdict),
        has_change(state_dir, context, verdict.job),
        repeated=any(_suspects(run) & set(verdict.nodes) for run in tries),
        searched=_searches(state_dir, verdict, now),
    )


def _searches(state_dir: Path, verdict: Verdict, now: datetime) -> tuple[PastSearch, ...]:
    if not verdict.job:
        return ()
    since = now - SEARCH_WINDOW
    found = searches_of(sound_runs(state_dir, since), verdict.job)
    return tuple(one for one in found if one.ended_at >= since)[-_SEARCHES_TOLD:]


def tried_for(state_dir: Path, verdict: Verdict, now: datetime) -> tuple[str, ...]:
    """Playbooks that brought this job up again in this incident, and yet it failed again."""
    return _names(_tries(state_dir, verdict, now))


def _names(runs: Iterable[Run]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run.playbook.name for run in runs))


def _tries(state_dir: Path, verdict: Verdict, now: datetime) -> list[Run]:
    """Runs that brought this job up again in this incident, and yet it failed again."""
    since = now - INCIDENT_WINDOW
    return [
        run
        for run in sound_runs(state_dir, since)
        if run.ended_at is not None
        and run.ended_at >= since
        and _is_about(run, verdict)
        and _came_through(run)
    ]


def _suspects(run: Run) -> frozenset[str]:
    """The nodes that were named when the run was asked for."""
    return frozenset(suspects_in(run.verdict))


def _is_about(run: Run, verdict: Verdict) -> bool:
    if run.job != verdict.job:
        return False
    if run.playbook.name in _ABOUT_NODES or not verdict.job:
        return _suspects(run) == set(verdict.nodes)
    return _is_users(str(run.verdict.get("class"))) is _is_users(str(verdict.fault))


def _is_users(fault: str) -> bool:
    """The user branch goes its own way; all others climb the same ladder when they fail again."""
    return fault in list(FaultClass) and branch_of(FaultClass(fault)) is Branch.USER


def _came_through(run: Run) -> bool:
    """It ended well, or it restarted the job and training did not come: that was a try as well."""
    restarts = [step.id for step in run.playbook.steps if step.uses == "job.restart"]
    done = run.record.in_state(StepState.DONE)
    return run.state is RunState.OK or any(split_instance(name)[0] in restarts for name in done)


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
