"""Lines that look like an error and that no row knows: nobody may then say that nothing is wrong."""

# ruff: noqa: E501 - a pattern is read whole

import re
from collections.abc import Iterable

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.phrasing.commands import is_command
from brctl.evidence.logs.quiet_rows import is_quiet_row
from brctl.evidence.logs.signature import Part, Signature

ALARM_ANCHORS: tuple[str, ...] = (
    "error", "fail", "fatal", "critical", "panic", "abort", "corrupt", "timed out", "timeout",
    "time-out", "unable to", "cannot", "could not", "couldn't", "can't ", "denied", "refused",
    "unreachable", "not responding", "exception", "hung", "stuck", "stall", "dead", "offline",
    "unhealthy", "degraded", "emerg", "oops", "bug:", "fault", "core dumped",
)  # fmt: skip
"""Texts of alarm, for the streaming engine."""

_ALARM = re.compile(
    r"(?<![\w./=-])(?!stderr\b)(?:[a-z]*err(?:or|ors|ored)?|[a-z]*error|fail(?:ed|ure|ures|s|ing)?|fatal|critical|panic|abort(?:ed|ing|s)?|"
    r"corrupt\w*|timed[ -]out|time-?outs?|unable to|cannot|could not|couldn't|can't|denied|refused|unreachable|not responding|"
    r"[a-z]*exception|hung|stuck|stall(?:ed|s)?|dead|offline|unhealthy|degraded|emerg|oops|bug|faults?|core dumped)\b(?![./=-]\w|\()",
    re.IGNORECASE,
)
_NO_ALARM = re.compile(
    r"(?<![\w.:])(?:no|without|zero|0|clear(?:ed)?|ignor(?:e|ed|ing)|if|fixed|recovered from)\s+(?:\w+\s+){0,3}(?:errors?|failures?|faults?|problems?)\b|"
    r"(?:errors?|failures?|failed|faults?|time-?outs?|exceptions?|aborted|stalls?)\w*(?: (?:count(?:er)?s?|event seq number))?[\"']?\s*(?:\([\w%]+\))?(?:\s*[:=|]?\s*\"?(?:0+(?:\.\d+)?|\d*\.\d+(?:e[+-]?\d+)?)|\s*[:=|]\s*\"?(?:none|n/a|false|no|null|disabled|-))(?:\s|[,;|%\"')\]]|$)|"
    r"(?:errors?|failures?|failed|faults?|time-?outs?|exceptions?|aborted|stalls?) (?:logged|detected|seen|total)\s*[:=|]?\s*(?:0+|none|n/a)(?=\s*(?:[,;|]|$))|"
    r"time-?out\w*(?:\(\w+\))?[\"']?\s*[:=]\s*\"?\d+|"
    r"^\s*\d+\s+(?:failed|errors?)\b.{0,3}$(?<=0 failed)|"
    r"\b(?:train\w*|valid\w*|test|eval\w*|dev|top-?[15]|mean|word|relative|squared|absolute|prediction|reconstruction) errors?\b(?! in\b)[^,;]{0,24}? (?:\d*\.\d+(?:e-?\d+)?\b|\d+ ?%)|\berrors? (?:is|are|was|were) not\b|"
    r"error[ _-](?:file|code|rate|bars?|handler|handling|detection|correction|report(?:s|ing)?)|error (?:record serialization|detection|reporting|handling|correction|source)|"
    r"fault[_ -]toleran\w*|fail[- ]?over|failsafe|fail2ban|(?<![\w-])default(?![\w-])|\bdead(?:line|lock)\b|critical (?:path|section|batch)",
    re.IGNORECASE,
)  # fmt: skip
_SOURCE_LINE = re.compile(
    r"\s*(?:at |File |raise |return |assert |if |except |try:|#|def )", re.IGNORECASE
)
_DIGITS = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+", re.IGNORECASE)

UNEXPLAINED = Signature(
    "unexplained", ALARM_ANCHORS, Part.UNEXPLAINED, None, 0.0, "words of alarm in any log"
)


def is_alarming(text: str) -> bool:
    """Whether a line reads like an error; counters at zero and options do not."""
    return _ALARM.search(text) is not None and not is_settled(text)


def is_settled(text: str) -> bool:
    """Whether every word of alarm on a line is of a counter at zero, an option or the like."""
    if _SOURCE_LINE.match(text) or is_quiet_row(text) or is_command(text):
        return True
    quiet = [match.span() for match in _NO_ALARM.finditer(text)]
    return bool(quiet) and all(_is_within(alarm, quiet) for alarm in _ALARM.finditer(text))


def _is_within(alarm: re.Match[str], spans: Iterable[tuple[int, int]]) -> bool:
    return any(start < alarm.end() and alarm.start() < end for start, end in spans)


def template_of(text: str) -> str:
    """The line with its numbers and addresses taken out: equal for lines of one origin."""
    return _DIGITS.sub("#", text)


def rank_unexplained(events: Iterable[LogEvent]) -> list[LogEvent]:
    """The unexplained lines, the most unusual first: seldom in its file, then early."""
    found = [e for e in events if e.signature is UNEXPLAINED and e.count]
    return sorted(found, key=lambda e: (e.count, e.source, e.line))
