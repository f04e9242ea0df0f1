"""A flight-recorder analysis for programs and for people."""

from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.hang import FlightRecorderAnalysis, GroupProgress, SuspectRank
from brctl.view.notices.page import Page
from brctl.view.schema import CollectiveGroupDocument, SuspectRankDocument
from brctl.view.text import columns, printable


def flight_page(result: FlightRecorderAnalysis) -> Page:
    """The answer of `brctl flight-recorder analyse`."""
    return Page(
        kind="FlightRecorderAnalysis",
        body={
            "ranks": list(result.ranks),
            "suspect_ranks": [_suspect_document(suspect) for suspect in result.suspects],
            "waiting_ranks": list(result.waiting),
            "common_cause": result.common_cause,
            "groups": [_group_document(group) for group in result.groups],
            "notes": list(result.notes),
        },
        text=_text(result),
        exit_code=_exit_code(result),
        names=tuple(str(suspect.rank) for suspect in result.suspects),
    )


def _exit_code(result: FlightRecorderAnalysis) -> ExitCode:
    if result.suspects:
        return ExitCode.CRITICAL
    if result.notes or result.waiting:
        return ExitCode.UNKNOWN
    return ExitCode.OK


def _suspect_document(suspect: SuspectRank) -> SuspectRankDocument:
    return {
        "rank": suspect.rank,
        "node": suspect.node or None,
        "reason": suspect.reason.value,
        "group": suspect.group or None,
        "sequence": suspect.sequence,
        "waiting_ranks": list(suspect.waiting),
        "detail": suspect.detail,
    }


def _group_document(group: GroupProgress) -> CollectiveGroupDocument:
    return {
        "group": group.group,
        "description": group.description,
        "ranks": list(group.ranks),
        "last_enqueued": {str(rank): number for rank, number in group.last_enqueued},
        "last_completed": {str(rank): number for rank, number in group.last_completed},
    }


def _text(result: FlightRecorderAnalysis) -> str:
    lines = [f"{len(result.ranks)} ranks, {len(result.waiting)} wait"]
    rows = [
        [f"rank {s.rank}", printable(s.node), s.reason.value, f"{len(s.waiting)} wait for it",
         printable(s.detail)]
        for s in result.suspects
    ]  # fmt: skip
    lines.append(columns(rows) if rows else _nobody(result))
    lines += [f"note: {printable(note)}" for note in result.notes]
    return "\n".join(lines)


def _nobody(result: FlightRecorderAnalysis) -> str:
    if not result.ranks:
        return "no dump could be read: nothing is known"
    if result.common_cause:
        return "all ranks entered and none completed: look at the fabric, no rank is suspected"
    return "nothing pending: no rank waits" if not result.waiting else "no rank can be named"
