"""Which of two lines came first, as far as the logs can tell."""

from brctl.evidence.logs.event import LogEvent

SAME_MOMENT_S = 0.5
"""Clocks of one cluster agree to about this; closer lines on two nodes have no order."""


def is_before(first: LogEvent, second: LogEvent) -> bool:
    """True when the first line certainly came earlier.

    Within one input the clock decides where it speaks (journals are often printed newest first),
    else the line number. Across inputs only clocks count: without them nothing is earlier.
    """
    timed = first.at_s is not None and second.at_s is not None
    if timed and first.at_s != second.at_s:
        assert first.at_s is not None and second.at_s is not None  # noqa: S101, PT018 - narrows both
        margin = 0.0 if first.source == second.source else SAME_MOMENT_S
        return second.at_s - first.at_s > margin
    return first.source == second.source and first.line < second.line


def seconds_between(first: LogEvent, second: LogEvent) -> float | None:
    """Seconds from the first to the second line; None when a clock is missing."""
    if first.at_s is None or second.at_s is None:
        return None
    return second.at_s - first.at_s


def sort_key(event: LogEvent) -> tuple[float, str, int]:
    """A total order that does not depend on the order of the inputs."""
    return (event.at_s if event.at_s is not None else float("inf"), event.source, event.line)
