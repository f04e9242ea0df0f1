"""Watchdogs of ranks side by side: far apart numbers, or another call at one number."""

import re
from collections import defaultdict
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


CALLS_DIFFER = root(
    FaultClass.HANG_MISMATCH, "c10d.calls-differ", "watchdog caught", 0.86,
    "PyTorch c10d texts: OpType and NumelIn of WorkNCCL", origin=Origin.USER,
)  # fmt: skip
"""Not matched by text: made from the watchdog lines of two ranks."""

_GROUP = re.compile(r"\bPG (?:ID|GUID) (\d+)")
_SIZE = re.compile(r"\bNumelIn=(\d+)")
_OF_ONE_SIZE = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE"})
"""Collectives to which each rank brings as much as every other."""


def calls_that_differ(events: Iterable[LogEvent]) -> list[LogEvent]:
    """An event when ranks wait in one group at one number for different calls or sizes."""
    calls: dict[tuple[str, int], dict[tuple[str, str], LogEvent]] = defaultdict(dict)
    for event in events:
        number, group = _number(event), _GROUP.search(event.text)
        if event.signature.name == "c10d.watchdog" and number is not None:
            place = (group[1] if group else "", number)
            calls[place].setdefault(_call(event), event)
    for found in calls.values():
        ranks = {event.fields.get("rank", "") for event in found.values()} - {""}
        if len(found) > 1 and len(ranks) > 1:
            first = min(found.values(), key=lambda event: (event.source, event.line))
            return [
                replace(first, signature=CALLS_DIFFER, count=1, family=CALLS_DIFFER.name, fields={})
            ]
    return []


def _call(event: LogEvent) -> tuple[str, str]:
    kind, size = event.fields.get("op", ""), _SIZE.search(event.text)
    return kind, size[1] if size and kind in _OF_ONE_SIZE else ""


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
