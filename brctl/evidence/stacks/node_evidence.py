"""What the stacks of all ranks say of each node, as evidence beside what else is known."""

from collections.abc import Container

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import STACKS_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.hang import StackAnalysis
from brctl.model.jobs.job import Job

CERTAIN_NODES = 1
"""One odd node among many equal ones is convicted; a whole parallel group is only hinted at:
most of its nodes are healthy (the paper accepts 6 or 7 of 8)."""


def assess_stacks(
    analysis: StackAnalysis,
    job: Job,
    excused: Container[int] = (),
    held_up: Container[int] = (),
) -> tuple[Evidence, ...]:
    """One observation per suspect node; none when all ranks stand in the same place.

    Args:
        analysis: One round of stacks.
        job: The job they are of.
        excused: Ranks that may rightly take as long as they do, or that nobody could look at; they
            convict no node here.
        held_up: Ranks that something outside of their machine may hold up: a hint at most.
    """
    alone = len(analysis.suspect_nodes) == CERTAIN_NODES
    return tuple(
        Evidence(
            kind="job.stacks.outlier",
            subject=Subject(node),
            weight=Weight.CONTEXT
            if (busy := _all_in(analysis, job, node, excused))
            else Weight.CONVICTS
            if alone and not _all_in(analysis, job, node, held_up)
            else Weight.HINTS,
            fault=FaultClass.HANG_MISMATCH,
            role=Role.CONTEXT if busy else Role.ROOT,
            source=STACKS_CHECK,
            text=f"{analysis.reason} ({_where(analysis, job, node)})",
            raw=" < ".join(_stack_of(analysis, job, node))[:400],
        )
        for node in analysis.suspect_nodes
    )


def _all_in(analysis: StackAnalysis, job: Job, node: str, ranks: Container[int]) -> bool:
    odd = [rank for rank in job.ranks_on(node) if rank in analysis.outliers]
    return bool(odd) and all(rank in ranks for rank in odd)


def _where(analysis: StackAnalysis, job: Job, node: str) -> str:
    ranks = [rank for rank in job.ranks_on(node) if rank in analysis.outliers]
    named = ", ".join(map(str, ranks)) or "none of its own"
    return f"outlying ranks on {node}: {named}"


def _stack_of(analysis: StackAnalysis, job: Job, node: str) -> tuple[str, ...]:
    ranks = set(job.ranks_on(node))
    return next((g.stack for g in analysis.groups if ranks & set(g.ranks) and not g.dominant), ())
