"""What NCCL's RAS service says of a job, for programs and for people."""

from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.ras import RasAnalysis, RasSuspect
from brctl.view.notices.page import Page
from brctl.view.schemas.jobs import RasSuspectDocument
from brctl.view.text import columns, printable


def ras_page(result: RasAnalysis) -> Page:
    """The answer of `brctl nccl ras`."""
    return Page(
        kind="RasAnalysis",
        body={
            "asked": result.asked,
            "nccl_version": result.version or None,
            "communicators": result.communicators,
            "ranks": result.ranks,
            "suspects": [_document(suspect) for suspect in result.suspects],
            "standing_unequal": result.waiting,
            "moved": result.moved,
            "unlisted_lagging_ranks": result.unlisted,
            "failed": list(result.failed),
            "notes": list(result.notes),
        },
        text=_text(result),
        exit_code=_exit_code(result),
        names=tuple(dict.fromkeys(s.node for s in result.suspects if s.node)),
    )


def _exit_code(result: RasAnalysis) -> ExitCode:
    """Nothing found is not health: NCCL counts what was launched, not what runs."""
    return ExitCode.CRITICAL if result.suspects or result.failed else ExitCode.UNKNOWN


def _document(suspect: RasSuspect) -> RasSuspectDocument:
    return {
        "node": suspect.node or None,
        "rank": suspect.rank,
        "reason": suspect.reason.value,
        "communicator": suspect.communicator or None,
        "detail": suspect.detail,
    }


def _text(result: RasAnalysis) -> str:
    version = f"NCCL {printable(result.version)}" if result.version else "NCCL of unknown release"
    lines = [
        f"{result.asked}: {version}, {result.communicators} communicators of up to"
        f" {result.ranks} ranks"
    ]
    rows = [
        [printable(s.node) or "?", "" if s.rank is None else f"rank {s.rank}", s.reason.value,
         printable(s.detail)]
        for s in result.suspects
    ]  # fmt: skip
    lines.append(columns(rows) if rows else _nobody(result))
    lines += [f"error: {printable(text)}" for text in result.failed]
    lines += [f"note: {printable(note)}" for note in result.notes]
    return "\n".join(lines)


def _nobody(result: RasAnalysis) -> str:
    if result.moved:
        return "no rank can be named: operations were launched between the answers"
    return (
        "no rank can be named: NCCL counts what was launched, not what runs; stacks and the flight"
        " recorder decide"
    )
