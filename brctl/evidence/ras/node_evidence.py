"""What NCCL says of each node, as evidence beside stacks and dumps."""

from collections.abc import Container

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import NCCL_RAS
from brctl.model.fault import FaultClass
from brctl.model.jobs.ras import RasAnalysis, RasSuspect

CERTAIN_NODES = 1
"""One node that all others wait for is convicted; of several, some only queue behind the cause."""


def assess_ras(analysis: RasAnalysis, excused: Container[int] = ()) -> tuple[Evidence, ...]:
    """One observation per suspect rank, and the errors NCCL tells of as context.

    Args:
        analysis: Of two answers, or of one that names processes that are gone.
        excused: Ranks that may rightly take as long as they do, or that nobody could look at; they
            convict no node here.
    """
    nodes = {suspect.node for suspect in analysis.suspects if suspect.node}
    found = [
        Evidence(
            kind=f"job.ras.{suspect.reason.value}",
            subject=Subject(suspect.node, "" if suspect.rank is None else f"rank:{suspect.rank}"),
            weight=Weight.CONTEXT if suspect.rank in excused else _weight(suspect, len(nodes)),
            fault=FaultClass.HANG_MISMATCH,
            role=Role.CONTEXT if suspect.rank in excused else Role.ROOT,
            source=NCCL_RAS,
            text=suspect.detail,
            raw=f"communicator={suspect.communicator}",
        )
        for suspect in analysis.suspects
        if suspect.node
    ]
    return (*found, *map(_failure, analysis.failed))


def _weight(suspect: RasSuspect, nodes: int) -> Weight:
    """NCCL's own network may be what fails, and one node's word may be a lie: that is a hint."""
    if nodes > CERTAIN_NODES or not suspect.is_seen:
        return Weight.HINTS
    return Weight.CONVICTS


def _failure(text: str) -> Evidence:
    return Evidence(
        kind="job.ras.error",
        subject=Subject(""),
        weight=Weight.CONTEXT,
        fault=None,
        role=Role.CONTEXT,
        source=NCCL_RAS,
        text=f"{text}; NCCL keeps no times, so which came first is not known",
    )
