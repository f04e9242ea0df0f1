"""Moments as people want them at night: UTC, local, or seconds since the fault."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from brctl.model.units import utc_text


class TimeStyle(StrEnum):
    """How `z` shows times."""

    UTC = "UTC"
    LOCAL = "local"
    SINCE = "since the fault"


@dataclass(frozen=True, slots=True)
class Times:
    """A way to write moments; `origin` is the fault's own moment."""

    style: TimeStyle = TimeStyle.UTC
    origin: datetime | None = None

    def of(self, moment: datetime | None) -> str:
        """The moment in a few characters; `-` when nobody knows it."""
        if moment is None:
            return "-"
        if self.style is TimeStyle.SINCE and self.origin is not None:
            return f"{(moment - self.origin).total_seconds():+.1f} s"
        if self.style is TimeStyle.LOCAL:
            return f"{moment.astimezone():%Y-%m-%d %H:%M:%S%z}"
        return utc_text(moment)

    def since(self, origin: datetime | None) -> "Times":
        """The same style, counted from another moment."""
        return Times(self.style, origin)

    def next(self) -> "Times":
        """The next style."""
        styles = list(TimeStyle)
        return Times(styles[(styles.index(self.style) + 1) % len(styles)], self.origin)
