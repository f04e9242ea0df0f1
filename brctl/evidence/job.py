"""What the ranks themselves say: who progresses, who waits, who never arrived, who is silent.

The rank that everybody waits for is the one that is NOT in the collective (faults.md of the field:
compare who joined, not who complains; ByteRobust, arXiv 2509.16293, section 5). Log lines are
judged elsewhere; this module reads the numbers of the `job.ranks` check.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from statistics import median
from typing import TypeVar

from brctl.evidence.operators import is_number
from brctl.model.answer import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport, Value

T = TypeVar("T")

RANKS_CHECK = "job.ranks"
WAITING_PHASE = "all_reduce"
DONE_PHASE = "done"
PYTHON_EXCEPTION = 1

ODD_ONES_LIMIT = 0.2
"""Absentees on more than this share of the nodes have a common cause, not a few bad nodes."""

SLOW_WAIT_FLOOR_S = 0.5
SLOW_WAIT_RATIO = 0.25
"""A straggler waits under a quarter of the median; below half a second waiting is noise."""

PAUSE_SHARE = 0.5
"""A pause longer than this share of `stall_after` is no sound step any more."""

LEAVING_LINES = 12
"""A rank that wrote more than this after its last traceback went on; one that wrote less ends."""

_TRACEBACK = "Traceback (most recent call last)"

_NO_CONTACT = frozenset(Outcome) - {
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
        _rank_view(rank, job.node_of(rank), by_node.get(job.node_of(rank)))
        for rank in range(job.world_size)
    )
    silent = tuple(
        node for node in job.nodes if node not in by_node or by_node[node].outcome in _NO_CONTACT
    )
    steps = [view.step for view in ranks if view.step is not None]
    ages = [view.progress_age_s for view in ranks if view.progress_age_s is not None]
    return JobStatus(
        job=job,
        ranks=ranks,
        step=max(steps, default=None),
        progress_age_s=min(ages, default=None),
        stalled=_is_stalled(job, ranks, ages),
        silent=silent,
    )


def _rank_view(rank: int, node: str, report: NodeReport | None) -> RankView:
    values: dict[str, Value] = {}
    for result in report.results if report else ():
        if result.check == RANKS_CHECK:
            values |= {
                m.name.removeprefix("job.rank."): m.value
                for m in result.measurements
                if m.subject == f"rank:{rank}"
            }
    return RankView(
        rank=rank,
        node=node,
        alive=_typed(values, "alive", bool),
        process_state=_typed(values, "process_state", str),
        exit_status=_typed(values, "exit_status", int),
        step=_typed(values, "step", int),
        phase=_typed(values, "phase", str),
        phase_age_s=_number(values, "phase_age_s"),
        progress_age_s=_number(values, "progress_age_s"),
        loss_finite=_typed(values, "loss_finite", bool),
        first_nonfinite_step=_typed(values, "first_nonfinite_step", int),
        wait_s=_number(values, "wait_s"),
        last_words=_typed(values, "last_words", str) or "",
    )


def _typed(values: Mapping[str, Value], name: str, kind: type[T]) -> T | None:
    value = values.get(name)
    # Exactly: true is an int to isinstance, and no step.
    return value if type(value) is kind else None


def _number(values: Mapping[str, Value], name: str) -> float | None:
    value = values.get(name)
    return float(value) if is_number(value) else None


def _is_stalled(job: Job, ranks: Sequence[RankView], ages: Sequence[float]) -> bool | None:
    known = [view for view in ranks if view.alive is not None]
    if not known:
        return None
    if any(view.exit_status not in (None, 0) for view in known):
        return True
    if all(view.phase == DONE_PHASE or view.exit_status == 0 for view in known):
        return False
    return min(ages) > job.stall_after_s if ages else None


def assess_job(status: JobStatus, reports: Iterable[NodeReport]) -> tuple[Evidence, ...]:
    """Evidence from the ranks' own numbers; empty while the job makes even progress."""
    outcomes = {report.node: report for report in reports}
    found = [*_non_finite(status), *_straggler(status)]
    if status.stalled is False and not status.ended:
        found += _silent_but_training(status)
    if status.stalled is not False:
        found += [*_silent_nodes(status, outcomes), *_absent_ranks(status), *_exits(status)]
        found += _leaving(status)
    return tuple(found)


def job_gaps(status: JobStatus, said: Iterable[Gap]) -> tuple[Gap, ...]:
    """What cannot be known of the job yet, said once: by another gap of the node or here."""
    explained = {gap.subject.node for gap in said}
    unread = [
        Gap(Subject(view.node, f"rank:{view.rank}"), RANKS_CHECK, f"{what} was not read")
        for view in status.ranks
        if view.node not in explained and (what := _unread(view))
    ]
    return (*unread, *_pause(status))


def _pause(status: JobStatus) -> Iterable[Gap]:
    """A pause on its way to a stall is too early for a verdict, and no proof of health."""
    age_s, limit_s = status.progress_age_s or 0.0, status.job.stall_after_s
    at_work = any(view.alive and view.phase != DONE_PHASE for view in status.ranks)
    if status.stalled is False and at_work and age_s > limit_s * PAUSE_SHARE:
        why = f"no rank made progress for {age_s:.1f} s; after {limit_s:g} s this is a stall"
        yield Gap(Subject(""), RANKS_CHECK, f"{why}: look again then")


def _unread(view: RankView) -> str:
    if view.alive is None:
        return "whether it runs"
    return "its progress" if view.alive and view.progress_age_s is None else ""


def _silent_nodes(status: JobStatus, reports: Mapping[str, NodeReport]) -> Iterable[Evidence]:
    """A silent node while its job stands still; many at once are a switch, not many nodes."""
    many = len(status.silent) > max(1, len(status.job.nodes) // 4)
    for node in status.silent:
        detail = reports[node].detail if node in reports else "was not asked"
        yield Evidence(
            kind="job.node.silent",
            subject=Subject(node),
            weight=Weight.HINTS if many or status.stalled is None else Weight.CONVICTS,
            fault=FaultClass.NETWORK_SWITCH if many else FaultClass.NODE_FAILURE,
            role=Role.ROOT,
            source="ssh",
            text=f"{node} does not answer while the job stands still: {detail}",
            raw=detail,
        )


def _silent_but_training(status: JobStatus) -> Iterable[Evidence]:
    """Every step takes all ranks, so a node that only we cannot reach is not dead."""
    for node in status.silent:
        yield Evidence(
            kind="job.node.trains",
            subject=Subject(node),
            weight=Weight.CLEARS,
            fault=FaultClass.NODE_FAILURE,
            role=Role.CONTEXT,
            source=RANKS_CHECK,
            text=f"{node} does not answer, but the job still makes progress, the last"
            f" {status.progress_age_s or 0.0:.1f} s ago, and needs the ranks on {node} for it",
            raw=f"step={status.step} progress_age_s={status.progress_age_s}",
        )


def _absent_ranks(status: JobStatus) -> Iterable[Evidence]:
    """Ranks that live but are not where the others wait."""
    waiting = [v for v in status.ranks if v.phase == WAITING_PHASE and v.process_state != "T"]
    absent = [
        v for v in status.ranks
        if v.alive and v not in waiting and _has_place(v) and not _is_leaving(v)
    ]  # fmt: skip
    if not waiting or not absent:
        return
    nodes = {view.node for view in absent}
    few = len(nodes) <= max(1, ODD_ONES_LIMIT * len(status.job.nodes))
    few = few and len(absent) * 2 < len(status.ranks)
    for view in absent:
        state = " and is stopped (state T)" if view.process_state == "T" else ""
        yield Evidence(
            kind="job.rank.absent",
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.CONVICTS if few and status.stalled else Weight.HINTS,
            fault=FaultClass.HANG_MISMATCH,
            role=Role.ROOT,
            source=RANKS_CHECK,
            text=f"rank {view.rank} stays in {view.phase or 'no phase'} at step {view.step}{state};"
            f" {len(waiting)} ranks wait for it in {WAITING_PHASE}",
            raw=f"phase={view.phase} phase_age_s={view.phase_age_s} state={view.process_state}",
        )


def _has_place(view: RankView) -> bool:
    """A phase that was not read accuses nobody; a stopped process is absent wherever it stood."""
    return view.process_state == "T" or view.phase not in (None, DONE_PHASE)


def _is_leaving(view: RankView) -> bool:
    """Between an exception and the end of its process a rank hangs for nobody: it has crashed."""
    _, head, said = view.last_words.rpartition(_TRACEBACK)
    lines = [re.sub(r"^\[rank\d+\]: ", "", line) for line in said.splitlines()[1:]]
    after = list(dropwhile(lambda line: line.startswith(" "), lines))
    return bool(head) and view.process_state != "T" and len(after) <= LEAVING_LINES


def _leaving(status: JobStatus) -> Iterable[Evidence]:
    """Ranks that raised and still live; those that waited are victims of another's end."""
    for view in status.ranks:
        if view.alive and view.phase != WAITING_PHASE and _is_leaving(view):
            yield Evidence(
                kind="job.rank.raised",
                subject=Subject(view.node, f"rank:{view.rank}"),
                weight=Weight.HINTS,
                fault=FaultClass.USER_CODE,
                role=Role.ROOT,
                source=RANKS_CHECK,
                text=f"rank {view.rank} raised an exception in {view.phase} at step {view.step}"
                " and is ending",
                raw=f"phase={view.phase} exit_status={view.exit_status}",
            )


def _exits(status: JobStatus) -> Iterable[Evidence]:
    """Ended ranks: those that waited are victims; one that left by itself points at the code.

    Status 1 is how Python ends on an exception. It hints, and what the rank said decides: a dying
    GPU ends its rank the same way.
    """
    for view in status.ranks:
        if view.exit_status in (None, 0):
            continue
        victim = view.phase == WAITING_PHASE
        own_exception = view.exit_status == PYTHON_EXCEPTION and not victim
        yield Evidence(
            kind="job.rank.exited",
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.HINTS if own_exception else Weight.CONTEXT,
            fault=FaultClass.USER_CODE if own_exception else None,
            role=Role.VICTIM if victim else Role.ROOT if own_exception else Role.CONTEXT,
            source=RANKS_CHECK,
            text=f"rank {view.rank} ended with status {view.exit_status} in {view.phase}"
            f" at step {view.step}",
            raw=f"exit_status={view.exit_status}",
        )


def _non_finite(status: JobStatus) -> Iterable[Evidence]:
    """A rank-local loss that is not finite names the place where it was so first.

    One step later the gradients have carried it to every rank, which are then victims.
    """
    bad = [view for view in status.ranks if view.loss_finite is False]
    steps = [v.first_nonfinite_step for v in bad if v.first_nonfinite_step is not None]
    first = min(steps, default=None)
    earliest = [view for view in bad if view.first_nonfinite_step == first]
    for view in bad:
        root = view in earliest
        known = root and len(earliest) == 1 and len(steps) == len(bad)
        yield Evidence(
            kind="job.rank.loss",
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.CONVICTS if known or len(bad) == 1 else Weight.HINTS,
            fault=FaultClass.NUMERIC_NAN,
            role=Role.ROOT if root else Role.VICTIM,
            source=RANKS_CHECK,
            text=f"the local loss of rank {view.rank} is not finite since step"
            f" {view.first_nonfinite_step}; {len(bad)} of {len(status.ranks)} ranks have none now",
            raw=f"loss_finite=false first_nonfinite_step={view.first_nonfinite_step}",
        )


def _straggler(status: JobStatus) -> Iterable[Evidence]:
    """The rank that waits least for the others is the one they wait for."""
    waits = {view: view.wait_s for view in status.ranks if view.wait_s is not None and view.alive}
    if len(waits) < 3 or status.stalled:
        return
    typical = median(waits.values())
    slowest = min(waits, key=lambda view: (waits[view], view.rank))
    if typical < SLOW_WAIT_FLOOR_S or waits[slowest] > SLOW_WAIT_RATIO * typical:
        return
    yield Evidence(
        kind="job.rank.waits-least",
        subject=Subject(slowest.node, f"rank:{slowest.rank}"),
        weight=Weight.CONVICTS,
        fault=FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"rank {slowest.rank} waits {waits[slowest]:.2f} s for the others,"
        f" who wait {typical:.2f} s: they wait for it",
        raw=f"wait_s={waits[slowest]} median={typical}",
    )
