"""Durations, sizes and moments as people write them, converted once."""

import re
from datetime import UTC, datetime
from functools import lru_cache

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
DURATION_PATTERN = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_DURATION = re.compile(DURATION_PATTERN)


def parse_duration_s(text: str) -> float:
    """Seconds meant by a duration such as `45m` or `1h30m`.

    Raises:
        ValueError: The text is not a sequence of numbers with ms, s, m, h or d.

    Examples:
        >>> parse_duration_s("1h30m")
        5400.0
    """
    parts = _DURATION.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise ValueError(f"{text!r}: not a duration; write 30s, 5m, 1h30m or 2d")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def parse_size_bytes(text: str) -> int:
    """Bytes meant by a size such as `8M` or `1G` (powers of 1024, as nccl-tests).

    Examples:
        >>> parse_size_bytes("8M")
        8388608
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text!r}: not a size; write 4096, 8M or 1G")
    return int(float(match[1]) * _BYTES[match[2].upper()])


def describe_duration(seconds: float) -> str:
    """A duration for people: `0.8 s`, `3m03`, `2h05`, `3d04h`.

    Examples:
        >>> describe_duration(183)
        '3m03'
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


@lru_cache(maxsize=256)
def rfc3339(moment: datetime) -> str:
    """The moment in UTC with milliseconds, as every brctl document writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def utc_text(moment: datetime, day: datetime | None = None) -> str:
    """A moment for people, in UTC; without its date beside another of the same day.

    Examples:
        >>> utc_text(datetime(2026, 11, 22, 14, 33, 55, tzinfo=UTC))
        '2026-11-22 14:33:55Z'
    """
    at = moment.astimezone(UTC)
    same_day = day is not None and day.astimezone(UTC).date() == at.date()
    return f"{at:%H:%M:%S}Z" if same_day else f"{at:%Y-%m-%d %H:%M:%S}Z"


def parse_rfc3339(text: str) -> datetime:
    """The moment an RFC 3339 text names, as an aware UTC datetime."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r}: no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r}: beyond the calendar") from None
