"""A calendar of the site as spans of time, or the reason why nobody knows what it says."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """From one moment up to, and not including, another."""

    start_at: datetime
    end_at: datetime


@dataclass(frozen=True, slots=True)
class Calendar:
    """One calendar around this moment.

    Attributes:
        spans: In order of time; none overlaps or touches the next.
        problem: Why it could not be read; "" when it was. Then nothing is known of its spans.
        absent: The site has no calendar of this name.
        origin: `file:line` of the configuration that names it.
    """

    name: str
    spans: tuple[Span, ...] = ()
    problem: str = ""
    origin: str = ""
    absent: bool = False

    def span_at(self, moment: datetime) -> Span | None:
        """The span a moment lies in."""
        return next((s for s in self.spans if s.start_at <= moment < s.end_at), None)

    def next_after(self, moment: datetime) -> Span | None:
        """The first span that begins later, as far as was looked ahead."""
        return next((s for s in self.spans if s.start_at > moment), None)


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in order of time, those that overlap or touch made one."""
    whole: list[Span] = []
    for span in sorted(spans):
        if whole and span.start_at <= whole[-1].end_at:
            whole[-1] = Span(whole[-1].start_at, max(whole[-1].end_at, span.end_at))
        elif span.start_at < span.end_at:
            whole.append(span)
    return tuple(whole)
