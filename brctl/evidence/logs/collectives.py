"""Watchdogs of ranks side by side: ranks that wait at far apart numbers run other programs."""

from collections.abc import Iterable
from dataclasses import replace

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import root
from brctl.model.fault import FaultClass, Origin

IN_FLIGHT = 64
"""Collectives that one rank may have enqueued ahead of another; a wider gap is another path."""

DIFFER = root(
    FaultClass.HANG_MISMATCH, "c10d.sequences-differ", "watchdog caught", 0.74,
    "PyTorch c10d texts: SeqNum of WorkNCCL", origin=Origin.USER,
)  # fmt: skip
"""Not matched by text: made from the watchdog lines of two ranks."""


def sequences_that_differ(events: Iterable[LogEvent]) -> list[LogEvent]:
    """An event on the rank that is behind, when two ranks time out at far apart numbers."""
    waits = [e for e in events if e.signature.name == "c10d.watchdog" and _number(e) is not None]
    ranks = {event.fields.get("rank", "") for event in waits} - {""}
    if len(ranks) < 2:
        return []
    waits.sort(key=lambda event: (_number(event) or 0, event.source, event.line))
    first, last = waits[0], waits[-1]
    if (_number(last) or 0) - (_number(first) or 0) <= IN_FLIGHT:
        return []
    if first.fields.get("rank") == last.fields.get("rank"):
        return []
    return [replace(first, signature=DIFFER, count=1, family=DIFFER.name)]


def _number(event: LogEvent) -> int | None:
    text = event.fields.get("seq", "")
    return int(text) if text.isdigit() and len(text) < 16 else None
