"""A job as the reports of its nodes describe it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from brctl.evidence.job.data.ledger import read_ledger
from brctl.evidence.job.data.replays import read_replay
from brctl.evidence.job.pace import patience_s, stands_after_s
from brctl.evidence.job.wrong_numbers import read_wrong_numbers
from brctl.evidence.logs.progress.formats import step_of_any_shape
from brctl.evidence.operators import is_number
from brctl.evidence.stacks.snapshot import RankStack
from brctl.model.command import Outcome
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.sweeps.report import NodeReport, Value

T = TypeVar("T")

STEPS = "job.steps."
WAITING_PHASE = "all_reduce"
DONE_PHASE = "done"

PAUSE_SHARE = 0.5
"""A pause longer than this share of `stall_after` is no sound step any more."""

NO_CONTACT = frozenset(Outcome) - {
    Outcome.ANSWERED,
    Outcome.AUTHENTICATION_FAILED,
    Outcome.HOST_KEY_MISMATCH,
    Outcome.OUTPUT_OVER_LIMIT,
    Outcome.UNPARSABLE,
    Outcome.NOT_AVAILABLE,
}


def read_job(job: Job, reports: Iterable[NodeReport]) -> JobStatus:
    """Collect the job's ranks from the reports of its nodes."""
    by_node = {report.node: report for report in reports}
    ranks = tuple(
        _of_any_shape(_rank_view(rank, job.node_of(rank), by_node.get(job.node_of(rank))))
        for rank in range(job.world_size)
    )
    silent = tuple(
        node for node in job.nodes if node not in by_node or by_node[node].outcome in NO_CONTACT
    )
    history = _history(by_node[node] for node in job.nodes if node in by_node)
    steps = [view.step for view in ranks if view.step is not None]
    ages = [view.progress_age_s for view in ranks if view.progress_age_s is not None]
    return JobStatus(
        job=job,
        ranks=ranks,
        step=max(steps, default=None),
        progress_age_s=min(ages, default=None),
        stalled=_is_stalled(job, ranks, ages, stands_after_s(job, ranks, history)),
        silent=silent,
        history=history,
    )


def _history(reports: Iterable[NodeReport]) -> StepHistory:
    """The windows of the job's steps, as the first node read them that has any."""
    windows: dict[str, dict[str, Value]] = {}
    for report in reports:
        for m in () if windows else report.measured_by(RANKS_CHECK):
            if m.name.startswith(STEPS):
                windows.setdefault(m.subject, {})[m.name.removeprefix(STEPS)] = m.value
    read = {name: window for name, values in windows.items() if (window := _window(values))}
    past = sorted(
        (w for name, w in read.items() if name.startswith("past:")), key=lambda w: w.first
    )
    return StepHistory(tuple(past), read.get("recent"), read.get("last"))


def _window(values: Mapping[str, Value]) -> StepWindow | None:
    first, count = _typed(values, "first", int), _typed(values, "count", int)
    if first is None or count is None:
        return None
    return StepWindow(
        first=first,
        count=count,
        step_s=_number(values, "step_s"),
        wait_s=_number(values, "wait_s"),
        load_s=_number(values, "load_s"),
        loss=_number(values, "loss"),
        grad_norm=_number(values, "grad_norm"),
        nonfinite=_typed(values, "nonfinite", int) or 0,
        tokens=_number(values, "tokens"),
        mean_s=_number(values, "mean_s"),
        trimmed_mean_s=_number(values, "trimmed_mean_s"),
    )


def _rank_view(rank: int, node: str, report: NodeReport | None) -> RankView:
    values: dict[str, Value] = {
        m.name.removeprefix("job.rank."): m.value
        for m in (report.measured_by(RANKS_CHECK) if report else ())
        if m.subject == f"rank:{rank}"
    }
    recent = max(0, _typed(values, "recent_steps", int) or 0)
    return RankView(
        rank=rank,
        node=node,
        alive=_typed(values, "alive", bool),
        process_state=_typed(values, "process_state", str),
        kernel_wait=_typed(values, "kernel_wait", str) or "",
        exit_status=_typed(values, "exit_status", int),
        step=_typed(values, "step", int),
        phase=_typed(values, "phase", str),
        phase_age_s=_number(values, "phase_age_s"),
        progress_age_s=_number(values, "progress_age_s"),
        loss_finite=_typed(values, "loss_finite", bool),
        first_nonfinite_step=_typed(values, "first_nonfinite_step", int),
        wait_s=_number(values, "recent_wait_s") if recent else _number(values, "wait_s"),
        step_s=_number(values, "recent_step_s") if recent else _number(values, "step_s"),
        load_s=_number(values, "recent_load_s"),
        recent_steps=recent,
        grad_finite=_typed(values, "grad_finite", bool),
        first_nonfinite_grad_step=_typed(values, "first_nonfinite_grad_step", int),
        loss_off_since=_typed(values, "loss_off_since", int),
        phase_longest_s=_number(values, "phase_longest_s"),
        last_words=_typed(values, "last_words", str) or "",
        log_age_s=_number(values, "log_age_s"),
        row_gap_s=_number(values, "row_gap_s"),
        progress_format=_typed(values, "progress_format", str) or "",
        ledger=read_ledger(_typed(values, "ledger", str) or ""),
        replay=read_replay(_typed(values, "replay", str) or ""),
        wrong_numbers=(wrong := read_wrong_numbers(_typed(values, "wrong_numbers", str) or "")),
        has_unread_numbers="wrong_numbers" in values and not wrong,
        compared_tensors=_typed(values, "compared_tensors", int),
        compared_kind=_typed(values, "compared_kind", str) or "",
    )


def _of_any_shape(view: RankView) -> RankView:
    """A step in words that no format knows: a number that climbs in what the rank said last."""
    if view.step is not None or view.log_age_s is None:
        return view
    step = step_of_any_shape(view.last_words)
    return view if step is None else replace(view, step=step, progress_format="any shape")


def _typed(values: Mapping[str, Value], name: str, kind: type[T]) -> T | None:
    value = values.get(name)
    # Exactly: true is an int to isinstance, and no step.
    return value if type(value) is kind else None


def _number(values: Mapping[str, Value], name: str) -> float | None:
    value = values.get(name)
    return float(value) if is_number(value) else None


def with_scheduler(status: JobStatus, known: JobRunState | None) -> JobStatus:
    """The job with what its scheduler knows of ranks of which their nodes know nothing."""
    if known is None:
        return status
    alive = {**dict.fromkeys(known.gone, False), **dict.fromkeys(known.alive, True)}
    ranks = tuple(
        replace(view, alive=alive[view.rank], exit_status=known.exits.get(view.rank))
        if view.alive is None and view.rank in alive
        else view
        for view in status.ranks
    )
    ages = [view.progress_age_s for view in ranks if view.progress_age_s is not None]
    after_s = stands_after_s(status.job, ranks, status.history)
    stalled = _is_stalled(status.job, ranks, ages, after_s)
    return replace(status, ranks=ranks, stalled=stalled, reasons=known.reasons)


def _is_stalled(
    job: Job, ranks: Sequence[RankView], ages: Sequence[float], after_s: float
) -> bool | None:
    known = [view for view in ranks if view.alive is not None]
    if not known and job.log_progress is None:
        return None
    if any(view.exit_status not in (None, 0) for view in known):
        return True
    if known and all(view.phase == DONE_PHASE or view.exit_status == 0 for view in known):
        return False
    if ages:
        return min(ages) > after_s
    return _logs_are_old(ranks, after_s)


def _logs_are_old(ranks: Sequence[RankView], after_s: float) -> bool | None:
    """Nothing was written for too long, so no step either; else only time tells: None."""
    ages = [view.log_age_s for view in ranks if view.log_age_s is not None]
    return True if ages and min(ages) > after_s else None


def compared(status: JobStatus, before_step: int | None, since_s: float) -> JobStatus:
    """Steps without a time of their own, beside the step of a look so many seconds before."""
    if status.progress_age_s is not None or status.stalled is not None or before_step is None:
        return status
    if status.step is None or status.job.log_progress is None:
        return status
    if status.step == before_step:
        stalled = True if since_s > patience_s(status) else None
        return replace(status, progress_age_s=since_s, stalled=stalled)
    if since_s > patience_s(status):
        return status
    return replace(status, progress_age_s=since_s, stalled=False)


def goes_on(earlier: JobStatus, later: JobStatus) -> bool:
    """Whether some rank came further between two looks, so that nothing stood still after all."""
    before = {view.rank: view for view in earlier.ranks}
    return later.stalled is False and any(
        (view.step, view.phase) != (before[view.rank].step, before[view.rank].phase)
        for view in later.ranks
        if view.step is not None and view.alive
    )


def with_stacks(status: JobStatus, stacks: Iterable[RankStack]) -> JobStatus:
    """The job with the places its ranks stand in."""
    by_rank = {stack.rank: stack for stack in stacks}
    return replace(
        status, ranks=tuple(_with_stack(view, by_rank.get(view.rank)) for view in status.ranks)
    )


def _with_stack(view: RankView, stack: RankStack | None) -> RankView:
    return view if stack is None else replace(view, stack=stack.stack, own_frame=stack.own_frame)
