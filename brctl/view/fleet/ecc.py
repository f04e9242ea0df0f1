"""GPU memory errors as people read them."""

from collections.abc import Sequence
from datetime import datetime

from brctl.model.evidence import Gap
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.sweeps.ecc import EccRow
from brctl.model.units import rfc3339, utc_text
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

_HEAD = (
    "NODE",
    "GPU",
    "SERIAL",
    "CE",
    "UE",
    "UE EVER",
    "REMAP",
    "PENDING",
    "FAILED",
    "ACTION",
    "JOB",
)


def ecc_page(rows: Sequence[EccRow], gaps: Sequence[Gap], *, only_pending: bool = False) -> Page:
    """The answer of `brctl ecc show` and `pending`."""
    shown = [row for row in rows if row.action] if only_pending else list(rows)
    lines = [columns([_HEAD, *map(_cells, shown)])] if shown else ["no GPU asks for anything"]
    lines += [f"not read: {g.subject.node}: {printable(g.why, 160)}" for g in gaps]
    waiting = sorted({row.node for row in rows if row.action in ("reset", "replace")})
    return Page(
        kind="Ecc",
        body={
            "gpus": [_document(row) for row in shown],
            "not_checked": [{"node": g.subject.node, "why": g.why} for g in gaps],
        },
        text="\n".join(lines),
        exit_code=_exit(rows, gaps),
        names=tuple(sorted({row.node for row in shown})),
        rows=tuple(_document(row) for row in shown),
        next=(f"brctl dx -w {fold(waiting)}",) if waiting else (),
    )


def ecc_history_page(node: str, found: Sequence[tuple[datetime, EccRow]]) -> Page:
    """The answer of `brctl ecc history`."""
    rows = [(utc_text(at), *_cells(row)) for at, row in found]
    empty = f"no kept sweep read memory errors of {node}"
    return Page(
        kind="EccHistory",
        body={"node": node, "readings": [_dated(at, row) for at, row in found]},
        text=columns([("AT", *_HEAD), *rows]) if rows else empty,
        exit_code=ExitCode.OK if rows else ExitCode.UNKNOWN,
        rows=tuple(_dated(at, row) for at, row in found),
    )


def _exit(rows: Sequence[EccRow], gaps: Sequence[Gap]) -> ExitCode:
    actions = {row.action for row in rows}
    if actions & {"replace", "reset"}:
        return ExitCode.CRITICAL
    if gaps or not rows or "?" in actions:
        return ExitCode.UNKNOWN
    return ExitCode.WARNING if actions - {""} else ExitCode.OK


def _cells(row: EccRow) -> tuple[str, ...]:
    counts = (row.corrected, row.uncorrected, row.uncorrected_ever, row.remapped)
    flags = (row.pending, row.failed)
    return (
        row.node,
        printable(row.device, 50) if row.index is None else str(row.index),
        printable(row.serial, 24),
        *("?" if count is None else str(count) for count in counts),
        *("?" if flag is None else "yes" if flag else "no" for flag in flags),
        row.action,
        row.job,
    )


def _document(row: EccRow) -> dict[str, Json]:
    return {
        "node": row.node,
        "device": row.device,
        "index": row.index,
        "serial": row.serial or None,
        "corrected": row.corrected,
        "uncorrected": row.uncorrected,
        "uncorrected_ever": row.uncorrected_ever,
        "rows_remapped": row.remapped,
        "remap_pending": row.pending,
        "remap_failed": row.failed,
        "action": row.action or None,
        "job": row.job or None,
    }


def _dated(at: datetime, row: EccRow) -> dict[str, Json]:
    return {"at": rfc3339(at), **_document(row)}
