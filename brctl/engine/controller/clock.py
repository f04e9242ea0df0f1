"""The one place that reads the clock; everything below takes the moment as an argument."""

from datetime import UTC, datetime


def now() -> datetime:
    """This moment, UTC."""
    return datetime.now(UTC)
