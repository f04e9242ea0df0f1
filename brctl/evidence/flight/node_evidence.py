"""What the flight recorders of all ranks say of each node, as evidence beside the rest."""

from collections.abc import Container, Sequence

from brctl.evidence.flight.dump import Dump
from brctl.evidence.job.pace import patience_s
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import FLIGHT_RECORDER
from brctl.model.fault import FaultClass
from brctl.model.jobs.hang import FlightRecorderAnalysis, SuspectRank, SuspectReason
from brctl.model.jobs.job_status import JobStatus

CERTAIN_NODES = 1
"""One node that all others wait for is convicted; of several, some only queue behind the cause."""


OLDER_S = 60.0
"""Dumps whose newest record is so much older than the job's last progress are of another pause."""


def is_of_this_pause(dumps: Sequence[Dump], status: JobStatus, now_s: float) -> bool:
    """Whether some rank recorded something after the job last made progress, or just before.

    Files of an attempt before stay where they are until a rank writes new ones.
    """
    newest_s = max((dump.newest_s for dump in dumps), default=0.0)
    began_s = now_s - (status.progress_age_s or 0.0)
    return newest_s == 0.0 or newest_s > began_s - max(OLDER_S, patience_s(status))


def assess_flight(
    analysis: FlightRecorderAnalysis, excused: Container[int] = ()
) -> tuple[Evidence, ...]:
    """One observation per suspect rank; none when nobody is waited for.

    Args:
        analysis: The dumps of all ranks.
        excused: Ranks that may rightly take as long as they do, or that nobody could look at; they
            convict no node here.
    """
    nodes = {suspect.node for suspect in analysis.suspects if suspect.node}
    aside = {s.rank for s in analysis.suspects if s.rank in excused or _says_less(s, analysis)}
    return tuple(
        Evidence(
            kind=f"job.flight.{suspect.reason.value}",
            subject=Subject(suspect.node, f"rank:{suspect.rank}"),
            weight=Weight.CONTEXT if suspect.rank in aside else _weight(suspect, nodes),
            fault=FaultClass.HANG_MISMATCH,
            role=Role.CONTEXT if suspect.rank in aside else Role.ROOT,
            source=FLIGHT_RECORDER,
            text=f"{suspect.detail}; {_who_waits(suspect.waiting)}",
            raw=f"group={suspect.group} sequence={suspect.sequence}",
        )
        for suspect in analysis.suspects
        if suspect.node
    )


def _says_less(suspect: SuspectRank, analysis: FlightRecorderAnalysis) -> bool:
    """A dump that nobody has, where another one shows who never joined."""
    reasons = {s.reason for s in analysis.suspects}
    return suspect.reason is SuspectReason.NO_DUMP and SuspectReason.NEVER_JOINED in reasons


def _weight(suspect: SuspectRank, nodes: set[str]) -> Weight:
    """A dump that is missing may only not have been fetched."""
    if len(nodes) > CERTAIN_NODES or suspect.reason is SuspectReason.NO_DUMP:
        return Weight.HINTS
    return Weight.CONVICTS


def _who_waits(ranks: Sequence[int]) -> str:
    return f"{len(ranks)} ranks wait for it" if ranks else "nobody is seen to wait for it"
