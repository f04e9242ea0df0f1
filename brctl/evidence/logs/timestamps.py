"""When a line was written, in the shapes that training logs and kernels use."""

# ruff: noqa: E501 - tables and patterns are read whole

import re

_DAYS = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_CLOCK = r"(?P<h>[0-2]\d):(?P<m>[0-5]\d):(?P<s>[0-6]\d)(?:[.,](?P<f>\d{1,9}))?"
_SHAPES = (
    re.compile(r"(?<!\d)20\d\d[-/](?P<mo>[01]\d)[-/](?P<d>[0-3]\d)[T _]" + _CLOCK),
    re.compile(
        r"\b(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<d>[0-3]?\d),? (?:20\d\d )?"
        + _CLOCK
    ),
    re.compile(r"(?<!\d)(?P<mo>[01]?\d)/(?P<d>[0-3]?\d)/(?:20)?\d\d[ |,]+" + _CLOCK),
    re.compile(r"(?:^|[\[\s])[IWEF](?P<mo>[01]?\d)(?P<d>[0-3]\d) " + _CLOCK),
)
_SEARCHED = 160
"""Timestamps stand at the start of a line; a date inside a message is not one."""


def seconds_of_year(text: str) -> float | None:
    """Seconds since 1 January, wall clock as written; None when the line carries no date.

    Zone designators are ignored: hosts of one cluster write one zone, and a skew that is known
    arrives as an offset of the input.
    """
    head = text[:_SEARCHED]
    for shape in _SHAPES:
        match = shape.search(head)
        if match:
            return _seconds(match)
    return None


def _seconds(match: re.Match[str]) -> float | None:
    parts = match.groupdict()
    month = _MONTHS[parts["name"]] if parts.get("name") else int(parts["mo"])
    day = int(parts["d"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    clock = int(parts["h"]) * 3600 + int(parts["m"]) * 60 + int(parts["s"])
    fraction = float("0." + parts["f"]) if parts.get("f") else 0.0
    return (_DAYS[month - 1] + day - 1) * 86400.0 + clock + fraction
