"""Who is missing where the others wait: silent nodes, and ranks that never joined."""

from collections.abc import Iterable, Mapping

from brctl.evidence.job.data.waits import waits_for_data
from brctl.evidence.job.kernel_waits import held_back_by, waits_for_own_disk
from brctl.evidence.job.long_phases import at_work, held_by_storage
from brctl.evidence.job.missing import (
    UNASKED,
    all_elsewhere,
    kernel_runs,
    left_over,
    waits_for_one,
    who_waits,
)
from brctl.evidence.job.pace import patience_s
from brctl.evidence.job.status import PAUSE_SHARE, WAITING_PHASE
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import AT_WORK, RANKS_CHECK, SILENT_NODE, SSH, STACKS_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport

ODD_ONES_LIMIT = 0.2
"""Absentees on more than this share of the nodes have a common cause, not a few bad nodes."""


def silent_nodes(status: JobStatus, reports: Mapping[str, NodeReport]) -> Iterable[Evidence]:
    """A silent node while its job stands still; many at once are a switch, not many nodes."""
    many = len(status.silent) > max(1, len(status.job.nodes) // 4)
    for node in status.silent:
        detail = reports[node].detail if node in reports else "was not asked"
        excuse = _who_else(status) if kernel_runs(node, reports) else ""
        yield Evidence(
            kind=SILENT_NODE,
            subject=Subject(node),
            weight=Weight.HINTS if many or excuse or status.stalled is None else Weight.CONVICTS,
            fault=FaultClass.NETWORK_SWITCH if many else FaultClass.NODE_FAILURE,
            role=Role.ROOT,
            source=SSH,
            text=f"{node} does not answer while the job stands still: {detail}{excuse}",
            raw=detail,
        )


def _who_else(status: JobStatus) -> str:
    """Who may keep the job waiting beside a node whose kernel still runs; "" when only it is left.

    A rank in an exchange is excused by that node and clears it no less: nobody knows which it is.
    """
    _, absent = all_elsewhere(status)
    if not absent:
        return ""
    ranks = ", ".join(str(view.rank) for view in absent[:4])
    return f"; its kernel takes connections, and the job may wait for rank {ranks} elsewhere"


def silent_but_training(status: JobStatus) -> Iterable[Evidence]:
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


def absent_ranks(
    status: JobStatus, reports: Mapping[str, NodeReport] = UNASKED
) -> Iterable[Evidence]:
    """Ranks that live but are not where the others wait.

    Long work keeps the others waiting and accuses nobody, until their watchdogs end them for it.
    One that waits for one other rank may wait for a silent node, or for another of those that are
    missing: either is a hint.
    """
    waiting, absent = who_waits(status, reports)
    busy, left = at_work(status), left_over(status, reports)
    nodes = {view.node for view in absent}
    few = len(nodes) <= max(1, ODD_ONES_LIMIT * len(status.job.nodes))
    few = few and len(absent) * 2 < len(status.ranks)
    yield from _own_disks(waiting, absent)
    for view in absent:
        if view.rank in busy and view not in left:
            yield _busy(view, busy[view.rank], len(waiting))
            continue
        if waits_for_data(view):
            yield _loads(view, len(waiting))
            if view.stack:
                continue
        state, fault = _held_by(view)
        own = f", in the job's own code ({view.own_frame})" if view.own_frame else ""
        yield Evidence(
            kind="job.rank.absent",
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.CONVICTS
            if few
            and _has_stayed(view, status)
            and not waits_for_data(view)
            and view.rank not in busy
            and not ((status.silent or len(nodes) > 1) and waits_for_one(view))
            else Weight.HINTS,
            fault=fault,
            role=Role.ROOT,
            source=RANKS_CHECK,
            text=f"rank {view.rank} stays in {view.phase or 'no phase'} at step"
            f" {view.step}{state}{own}; {len(waiting)} ranks wait for it in {WAITING_PHASE}",
            raw=f"phase={view.phase} phase_age_s={view.phase_age_s} state={view.process_state}",
        )


def _held_by(view: RankView) -> tuple[str, FaultClass]:
    """What holds an absent rank, in words, and whose fault that is; its own code's by default."""
    if view.stopped_by:
        return f" and is {view.stopped_by}", FaultClass.HANG_MISMATCH
    if held_by_storage(view):
        disk = "its own disk" if waits_for_own_disk(view) else "a file system"
        words = f", in its kernel, which waits for {held_back_by(view) or disk}"
        return f"{words} ({view.kernel_wait})", FaultClass.STORAGE_CHECKPOINT
    return "", FaultClass.HANG_MISMATCH


def _own_disks(waiting: Iterable[RankView], absent: Iterable[RankView]) -> Iterable[Evidence]:
    """Where a rank waits for its own disk: nodes all of whose ranks came to where it is missed.

    A disk is one node's, as a file server is not, and these show that theirs are not meant.
    """
    kept = [view for view in absent if waits_for_own_disk(view)]
    nodes = {view.node for view in waiting if view.alive} - {view.node for view in absent}
    for node in sorted(nodes) if kept else ():
        yield Evidence(
            kind="job.rank.past-its-files",
            subject=Subject(node),
            weight=Weight.CLEARS,
            fault=FaultClass.STORAGE_CHECKPOINT,
            role=Role.CONTEXT,
            source=RANKS_CHECK,
            text=f"the ranks on {node} wait for rank {kept[0].rank}, and for no file",
        )


def _busy(view: RankView, why: str, waiting: int) -> Evidence:
    """A rank at long work keeps the others waiting, and that may be all that it is."""
    return Evidence(
        kind=AT_WORK,
        subject=Subject("", f"rank:{view.rank}"),
        weight=Weight.HINTS,
        fault=FaultClass.HANG_MISMATCH,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"{why}; {waiting} ranks wait for it in {WAITING_PHASE}, and may have to",
        raw=f"phase={view.phase} phase_age_s={view.phase_age_s}",
    )


def _loads(view: RankView, waiting: int) -> Evidence:
    """A rank that waits for its batch: its loader's processes tell why, this alone does not."""
    return Evidence(
        kind="job.rank.waits-for-data",
        subject=Subject(view.node, f"rank:{view.rank}"),
        weight=Weight.HINTS,
        fault=FaultClass.DATA_LOADER,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"rank {view.rank} waits for its data loader at step {view.step};"
        f" {waiting} ranks wait for it in {WAITING_PHASE}",
        raw=f"phase={view.phase} phase_age_s={view.phase_age_s}",
    )


def own_code(status: JobStatus, reports: Mapping[str, NodeReport]) -> Iterable[Evidence]:
    """Ranks the others wait for that stand in the job's own code: it may be the code that hangs."""
    for view in who_waits(status, reports)[1]:
        if view.own_frame and not view.stopped_by:
            yield Evidence(
                kind="job.rank.own-code",
                subject=Subject(view.node, f"rank:{view.rank}"),
                weight=Weight.CONTEXT,
                fault=FaultClass.USER_CODE,
                role=Role.CONTEXT,
                source=STACKS_CHECK,
                text=f"rank {view.rank} stands in {view.own_frame}, the job's own code, and in no"
                " library: a restart on the same machine tells whether the machine matters",
                raw=" < ".join(view.stack)[:400],
            )


def _has_stayed(view: RankView, status: JobStatus) -> bool:
    """A rank of a job that broke a moment ago may only not have arrived yet."""
    if view.stopped_by or view.phase_age_s is None:
        return bool(status.stalled)
    return bool(status.stalled) and view.phase_age_s > patience_s(status) * PAUSE_SHARE
