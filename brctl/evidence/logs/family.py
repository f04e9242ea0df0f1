"""One family of lines in one input: how many, the newest, and how many a minute."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from brctl.evidence.logs.event import LogEvent

_SHORTEST_MIN = 1.0
"""A burst within seconds is judged over a minute: two lines in a second are no storm."""


@dataclass(slots=True)
class Family:
    """What is kept of all lines of one signature in one input.

    Attributes:
        total: Errors the lines report; lines that carry their own count (`12 CE`) weigh as many.
    """

    lines: int = 0
    total: int = 0
    newest_line: int = 0
    newest_at_s: float | None = None
    _first_s: float | None = None
    _last_s: float | None = None

    def see(
        self, line: int, at_s: float | None, uptime_s: float | None, fields: Mapping[str, str]
    ) -> None:
        """Take one line; `at_s` is the wall clock, `uptime_s` the kernel's own."""
        self.lines += 1
        amount = fields.get("amount", "")
        self.total += int(amount) if amount.isdigit() and len(amount) < 10 else 1
        if at_s is None or self.newest_at_s is None or at_s >= self.newest_at_s:
            self.newest_line, self.newest_at_s = line, at_s
        clock = uptime_s if uptime_s is not None else at_s
        if clock is not None:
            self._first_s = clock if self._first_s is None else min(self._first_s, clock)
            self._last_s = clock if self._last_s is None else max(self._last_s, clock)

    @property
    def rate_per_min(self) -> float | None:
        """Errors a minute over the time the family spans; None without clocks."""
        if self._first_s is None or self._last_s is None:
            return None
        return self.total / max((self._last_s - self._first_s) / 60.0, _SHORTEST_MIN)

    def describe(self, first: LogEvent) -> LogEvent:
        """The family's first event with what is known of all."""
        return replace(
            first,
            count=self.lines,
            reported=self.total,
            last_line=self.newest_line,
            last_at_s=self.newest_at_s,
            rate_per_min=self.rate_per_min,
        )
