"""Follow a run from outside: events as they are written, until it ends or its process is gone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from brctl.journal.store import EVENTS, decode, is_running
from brctl.model.runs.event import Event, EventType

POLL_S = 0.1
START_GRACE_S = 20.0
"""A process that was just started has not taken its lock yet; importing us takes about a second."""


async def follow(
    run_dir: Path, *, after_seq: int = -1, poll_s: float = POLL_S
) -> AsyncIterator[Event]:
    """Yield events with a higher number than `after_seq` as they appear.

    Ends after an END that nothing follows, or when no process owns the run any more: a stream
    without END tells the reader that the run was cut off.
    """
    waited_s, after, offset = 0.0, after_seq, 0
    while True:
        alive = is_running(run_dir)
        events, offset = _read_from(run_dir / EVENTS, offset)
        fresh = [event for event in events if event.seq > after]
        for event in fresh:
            after = event.seq
            yield event
        if fresh and fresh[-1].type is EventType.END:
            return
        if not fresh and not alive and (after > after_seq or waited_s >= START_GRACE_S):
            return
        await asyncio.sleep(poll_s)
        waited_s += poll_s


def _read_from(path: Path, offset: int) -> tuple[list[Event], int]:
    if not path.exists():
        return [], offset
    with path.open("rb") as stream:
        stream.seek(offset)
        raw = stream.read()
    whole = raw[: raw.rfind(b"\n") + 1]
    events = []
    for line in whole.splitlines():
        try:
            events.append(decode(line)[0])
        except ValueError:
            continue
    return events, offset + len(whole)
