"""Who is missing where the others wait: silent nodes, and ranks that never joined."""

from collections.abc import Iterable, Mapping

from brctl.evidence.job.ends import is_leaving
from brctl.evidence.job.status import DONE_PHASE, RANKS_CHECK, WAITING_PHASE
from brctl.model.evidence import Evidence, Role, Subject, Weight
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


def absent_ranks(status: JobStatus) -> Iterable[Evidence]:
    """Ranks that live but are not where the others wait."""
    waiting = [v for v in status.ranks if v.phase == WAITING_PHASE and v.process_state != "T"]
    absent = [
        v for v in status.ranks
        if v.alive and v not in waiting and _has_place(v) and not is_leaving(v)
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
