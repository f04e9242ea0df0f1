"""Counters of errors at zero, states that are not active, tests that pass: a listing proves health.

One such line is said in passing; several, and none that says the opposite, are somebody's check.
"""

# ruff: noqa: E501 - a pattern is read whole

import re
from collections.abc import Iterable, Mapping

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import healthy
from brctl.evidence.logs.unexplained import is_alarming

AT_ZERO = healthy("progress.at-zero", "error", 0.7, "counters of errors at zero, tests that pass")
"""Not matched by text: made from a log's own lines."""

_NEEDED = 3
_LINES = 400
_LENGTH = 600
"""Characters of a line that are looked at."""

_BAD = r"\w*(?:error|err|fail|fault|drop|discard|lost|timeout|retr|downed|uncorrect|slowdown|violation|throttl|warning|bad|miss|recover|remap|pending|invalid|corrupt|overload|abort|count)\w*"
_AT_REST = re.compile(
    rf"\b{_BAD}(?:[ _\w()/%-]{{0,40}})?\s*[:=|.]+\s*(?:0(?:x0+|\.0+)?|none|no|n/a|not active|inactive|disabled|false|ok|pass(?:ed)?)\b(?![.:]\d)|"
    r"^no [\w ]{2,24} errors?\b|\b0 (?:errors?|failures?|failed|bad|wrong)\b|\|\s*(?:pass|healthy|ok)\s*\||: not active\s*$|(?:[:,|=]|\]\]|(?<!\.)\.{2,}|(?<=[a-z\d])(?= pass))\s*(?:ok|success|pass(?:ed)?|healthy|good|optimal|nominal)\s*$|"
    r"^\W*(?:ok|pass(?:ed)?)\s*[:\]-]",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    rf"\b{_BAD}[ \w()/-]{{0,40}}\s*[:=|.]+\s*[1-9]|\bfail(?:ed|s)?\b|\bunhealthy\b|\bERR!|"
    r"(?<![\w.:])[1-9]\d* (?:\w+ ){0,2}(?:uncorrect\w*|missing|lost|bad|errors?|faults?)\b",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"^(?P<label>[^:=|]{2,40}).*(?:[:,|=\s])(?:ok|success|pass(?:ed)?|healthy|good|optimal|nominal)\s*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_SEPARATOR = re.compile(r"[:=|]")
_MEMORY = re.compile(r"\b[1-9]\d* [CU]E\b")
"""An error's own place in memory (`row:0 col:0`) is no counter."""


def counters_at_zero(lines: Mapping[int, str], source: str) -> LogEvent | None:
    """The newest line of a listing whose counters are at rest; None where one is not.

    Args:
        lines: A log's lines by number.
        source: The log's name.
    """
    kept = [(number, text[:_LENGTH]) for number, text in list(lines.items())[-_LINES:]]
    at_rest = [(n, text) for n, text in kept if _AT_REST.search(text) and not _MEMORY.search(text)]
    rest = {number for number, _ in at_rest}
    others = [text for number, text in kept if number not in rest]
    if len(at_rest) < _NEEDED or any(is_alarming(t) or _COUNTED.search(t) for t in others):
        return None
    if _has_row_without_verdict(at_rest, others):
        return None
    number, text = at_rest[-1]
    return LogEvent(AT_ZERO, source, number, text[:400], count=len(at_rest))


def _has_row_without_verdict(at_rest: Iterable[tuple[int, str]], others: Iterable[str]) -> bool:
    """Whether a thing that differs by its number only from those that passed is not said to."""
    labels = {_form(row["label"]) for _, text in at_rest if (row := _VERDICT.match(text))}
    return any(_form(_SEPARATOR.split(text, maxsplit=1)[0]) in labels for text in others)


def _form(label: str) -> str:
    return _NUMBER.sub("#", label).strip().lower()
