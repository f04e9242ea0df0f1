"""Rows that name a thing and accuse nobody: counters at zero, sensors that are ok, options.

A table names every fault that it could count: what its rows say stands in their last column. Known
by their form, so that no rule reads the name of a counter as its having counted.
"""

# ruff: noqa: E501 - a pattern is read whole

import re

MUST_BE = re.compile(
    r"\b(?:gpus?|devices?|nodes?|ranks?|workers?|available|free|idle|ready|active|alive|present|online|connected|detected|found|visible|speed|width|rate|"
    r"running|enabled|valid|saved|exists?|initiali[sz]ed|health\w*|success\w*|complete\w*|carrier|state|status|reason|link|up|responding|reachable|passed|supported)\b",
    re.IGNORECASE,
)
"""What ought to be there: at zero, or with a no behind it, it is missing."""

_UNIT = r"(?: ?(?:%|[a-z]{1,8}(?:/s)?))?"
_NOTHING = rf"(?:0+(?:\.0+)?{_UNIT}|0x0+|no(?: (?:errors?|faults?|failures?))?|none|n/a|false|null|nil|\[\]|\{{\}}|not active|(?:de-?asserted|inactive))"
_WELL = r"(?:ok|okay|pass(?:ed)?|success(?:ful)?|healthy|optimal|nominal|good|fully redundant)"
_ROW = re.compile(
    rf"^(?P<label>[^\[\]=:|]{{2,120}}?)(?P<mark>[:=|]|\.{{3,}}+)[ \t]*(?:(?P<nothing>{_NOTHING})|(?P<well>{_WELL}))[ \t|,;]*$",
    re.IGNORECASE,
)
UNWELL = (
    r"(?:lost|loss|fail|fault|i?err(?:or)?s?\b|uncorrect|(?<!de)(?<!de-)assert|degrad|non-?recover|critical|absent|missing|removed|disabled|trip|overload|over-?temp|"
    r"exceeded|invalid|inconsist|insufficient|non-?redundant|not redundant|offline|power off|bad\b)"
)
"""What a discrete sensor says in its last column: IPMI's `ok` is that it answers, not that it is well."""

_SENSOR = re.compile(
    rf"^[^|]{{2,40}}\|[^|]{{1,40}}\|[ \t]*{_WELL}[ \t]*(?:\|(?!.*{UNWELL})|$)", re.IGNORECASE
)

_ELSEWHERE = re.compile(r"[,;] ?count$", re.IGNORECASE)
"""`Xid 74 NVLink error, count=0x0` counts nothing of what it tells."""

_OVER = re.compile(rf"{UNWELL}.*?(?:\||-)[ \t]*de-?assert(?:ed)?[ \t]*(?:[|\]]|$)", re.IGNORECASE)
"""A sensor's event that went: what was bad is not any more (`Presence | Deasserted` is bad)."""

_GOT_WELL = re.compile(
    r"(?:\b(?:degraded|fail(?:ed)?|fault(?:ed|y)?|unhealthy|down|offline|critical|warning|bad|error|inactive|unavailable)\b['\"]? *(?:->|=>)|\b(?:degraded|faulted|unhealthy|down|offline|critical|inactive|unavailable)\b['\"]? *\bto\b) *['\"]?"
    r"(?:healthy|ok|okay|up|active|normal|optimal|online|good|connected|available|running)\b(?!.*(?:->|=>|\bto\b)).{0,40}$|"
    r"^(?-i:(?:[A-Z]{2,6}|[\d/:. -]{8,24})?[ \t]*Repaired)\b|\(code=exited, status=0/SUCCESS\)",
    re.IGNORECASE,
)
"""A change of state for the better as a line's end, iLO's word for an event that is over, an end with success."""

_ASKED = re.compile(r"\?[ \t]*(?:no|none|nothing|0)\.?$", re.IGNORECASE)

_ZERO_BEHIND = re.compile(
    r"(?P<rest>[\w%/-]*)[\"']?(?: ?\([\w%/ ]{1,12}\))?[ \t]*(?P<mark>[:=])[ \t]*[\"']?(?P<nothing>0+(?:\.0+)?|0x0+|none|false|null|\[\])(?!, ?\d)(?=[ \t]*(?:[,;|)\]}\"']|$|[ \t][\w. ]{1,24}[=:]))",
    re.IGNORECASE,
)
_NONE_BEFORE = re.compile(
    r"(?:^|[,;|]|\b(?:DEBUG|INFO|NOTICE|WARN(?:ING)?):?|\b(?:with|had|has|have|found|and|saw|were|was))\s*0\s+$|(?:^|[,;|:]|\b(?:with|had|has|have|found|and|saw|were|was))\s*(?:no|zero|without any)\s+$",
    re.IGNORECASE,
)
_COUNTED = (
    r"(?:err\w*|fail\w*|faults?|count\w*|lost|drop\w*|miscompare\w*|mismatch\w*|corrupt\w*|down(?:ed)?|nans?|oom|skip\w*|retr\w*|replay\w*|uncorrect\w*|unavailable|"
    r"time-?outs?|violations?|throttl\w*|slowdown|retired|pending|remapp\w*|events?|abort\w*|stall\w*|stragglers?|hung|panics?|restarts?|kills?)"
)
"""What is counted; behind other names (`DIMM=0`) the number says which one it is."""

_ENDS_COUNTED = re.compile(rf"{_COUNTED}$", re.IGNORECASE)
_BEGINS_COUNTED = re.compile(rf"(?:\w+ )?{_COUNTED}\b", re.IGNORECASE)
_COLUMNS = re.compile(
    rf"^(?=.{{0,80}}\b{_COUNTED}\b)[^\[\]=:|]{{2,120}}?[ \t]{{3,}}+0(?:[ \t/]{{1,8}}0){{0,16}}$",
    re.IGNORECASE,
)
_ENDS_VERB = re.compile(
    r"(?<![^\W_])(?:failed|down|lost|hung|aborted|stalled|unavailable|dropped|corrupt(?:ed)?|nan)$",
    re.IGNORECASE,
)
_FIELD = re.compile(r"[,;|(\[{]")
_DENIED = frozenset({"no", "false", "n/a", "not active", "inactive", "deasserted", "de-asserted"})
_NEAR = 60
_OPTIONS = re.compile(r"\b\w*(?:Config|Args|Arguments|Params|Options|Settings|Namespace)\(\w+=")


def is_quiet_row(text: str) -> bool:
    """Whether a line is a row of a listing whose value is nothing, or that all is well."""
    if _SENSOR.match(text) or (_OVER.search(text) and not MUST_BE.search(text)):
        return True
    if _GOT_WELL.search(text) or _COLUMNS.match(text):
        return True
    if _ASKED.search(text) and not MUST_BE.search(text):
        return True
    row = _ROW.match(text)
    if row is None:
        return False
    if row["well"] is not None:
        return True
    label = row["label"].rstrip(" \t.")
    if _ELSEWHERE.search(label):
        return False
    if _ENDS_COUNTED.search(label):
        return _is_count(label, row)
    return MUST_BE.search(label) is None


_FALLS_SHORT = re.compile(
    r"\b(?:could be|should be|(?<!as )expected|instead of|down(?:graded|shifted|trained))\b|\b(?:is|are|was|were) not\b",
    re.IGNORECASE,
)


def falls_short(text: str) -> bool:
    """Whether a line tells beside what there is what there ought to be: `2x (Could be 4X)`."""
    return _FALLS_SHORT.search(text) is not None


def is_missed(label: str) -> bool:
    """Whether what has this name ought to be there: with none behind it, it is missing."""
    return MUST_BE.search(label) is not None and not _ENDS_COUNTED.search(label.rstrip())


def counts_nothing(match: re.Match[str]) -> bool:
    """Whether the words that a rule matched are a counter at zero, or stand behind a none."""
    text = match.string
    zero = _ZERO_BEHIND.match(text, match.end())
    if zero is not None and _ENDS_COUNTED.search(text[match.start() : zero.end("rest")]):
        return _is_count(text[: zero.end("rest")], zero)
    before = text[max(0, match.start() - _NEAR) : match.start()]
    return _BEGINS_COUNTED.match(match[0]) is not None and _NONE_BEFORE.search(before) is not None


def is_option(match: re.Match[str]) -> bool:
    """Whether what a rule matched stands in a dump of options: it was chosen, not seen."""
    dump = _OPTIONS.search(match.string, 0, match.start())
    if dump is None:
        return False
    between = match.string[dump.start() : match.start()]
    return between.count("(") > between.count(")")


def _is_count(label: str, value: re.Match[str]) -> bool:
    """Whether a name counts what its value says: `save failed: None` tells what failed instead.

    A verb does so as a key (`failed=0`, `link_failed: 0`), behind what it counts (`jobs failed: 0`)
    and where its value denies it (`fan failed: no`).
    """
    if value["mark"] == "=" or not _ENDS_VERB.search(label):
        return True
    words = _FIELD.split(label)[-1].split()
    return len(words) == 1 or words[-2].endswith("s") or value["nothing"].lower() in _DENIED
