"""Which path, or which node's paths, have data to send while others have none: a limit is there.

A limit holds packets back before they are sent, and loses and delays none that it lets through
(decisions 0422 and 0464).
"""

from collections.abc import Iterable, Sequence

from brctl.evidence.job.network.paths import LEAST_SEGMENTS, PathEnd

LEAST_ENDS = 3
"""Of fewer ends none is the odd one (own)."""

BUSY_PCT, IDLE_PCT = 80.0, 25.0
"""A path that has data to send for so much of the time, while most have for so little (own)."""

OFTEN_PCT = 33.0
"""Several ends of one place say it together when each is busy a third of the time (own)."""

TIMES_AS_LONG = 3.0
"""And a packet takes them so many times as long as any other end (own; live, at 20 Mbit/s, 3.1)."""

AS_MUCH = 0.5
"""Of the packets of whoever sends most: fewer are another kind of traffic (own)."""


def busiest(ends: Sequence[PathEnd]) -> tuple[PathEnd, ...]:
    """The ends that have data to send while others have none; () when none stand out.

    One end, or several that share a path or a node.
    """
    known = sorted(
        (end for end in ends if "busy_pct" in end.values), key=lambda e: (e.source, e.peer)
    )
    if len(known) <= LEAST_ENDS:
        return ()
    return _one_always_busy(known) or _held_back_together(known)


def shared_by(ends: Iterable[PathEnd]) -> frozenset[str]:
    """The nodes that each of the ends belongs to or leads to: both of one path, one, or none."""
    return frozenset.intersection(*(_both(end) for end in ends))


def _one_always_busy(ends: Sequence[PathEnd]) -> tuple[PathEnd, ...]:
    """The one end that sends nearly all the time while most others have nothing to send."""
    *others, top = sorted(ends, key=_busy_pct)
    if _busy_pct(top) < BUSY_PCT or _busy_pct(others[-1]) >= BUSY_PCT:
        return ()
    return (top,) if _busy_pct(others[len(others) * 3 // 4]) <= IDLE_PCT else ()


def _held_back_together(ends: Sequence[PathEnd]) -> tuple[PathEnd, ...]:
    """The slow ends of those that send much, where they share a place and ends elsewhere are quick.

    Ends are compared by the time that a packet takes them: nodes are not looked at in the same
    moment, and one that has more to send than others is no slower for it. Where no end elsewhere
    sends as much, as beside a server of parameters, there is nothing to compare with.
    """
    least = max(LEAST_SEGMENTS, AS_MUCH * max(map(_sent, ends)))
    much = [end for end in ends if _sent(end) >= least]
    slow = tuple(end for end in much if _busy_pct(end) >= OFTEN_PCT)
    quick = [end for end in much if end not in slow]
    place = shared_by(slow) if len(slow) > 1 else frozenset()
    if not place or all(place & _both(end) for end in quick):
        return ()
    clear = min(map(_per_packet, slow)) >= TIMES_AS_LONG * max(map(_per_packet, quick))
    return slow if clear else ()


def _both(end: PathEnd) -> frozenset[str]:
    return frozenset({end.source, end.peer})


def _busy_pct(end: PathEnd) -> float:
    return end.values["busy_pct"]


def _sent(end: PathEnd) -> float:
    """Packets in the look itself: those since the connection was made may be old."""
    return end.values.get("segments_now", 0.0)


def _per_packet(end: PathEnd) -> float:
    return _busy_pct(end) / _sent(end)
