"""How bad a line's own program says that it is: a word of alarm below a warning is no alarm.

Only lines that no rule knows are read this way, and only levels that stand in a logger's place: a
program that prints its failures as information is known by its rules (NCCL is).
"""

# ruff: noqa: E501 - a pattern is read whole

import re

_LOOKED_AT = 200
"""Characters of a line in which its level stands."""

_BELOW_WARNING = re.compile(
    r"(?:^|[ :\]])[ID]\d{4} \d\d:\d\d:\d\d\.\d|"  # klog and glog
    r"(?<![\w-])level=\"?(?:info|debug|trace|notice)\b|"  # logfmt, not an option `--log-level=info`
    r"[\"'](?:level|severity|lvl|loglevel)[\"']\s*:\s*[\"'](?:info|debug|trace|notice|ok|informational)\b|"  # JSON, Redfish
    r"\[(?:INFO|DEBUG|TRACE|NOTICE)\]|"
    r"^\S{0,4}<[67]>|"  # the kernel's own priority
    r"(?:^|[\d\])Z,]) +(?:\| *)?(?:INFO|DEBUG|TRACE|NOTICE)(?: |: |\t| *\|)|"
    r"\d\] [IDT] \[|"  # GlusterFS
    r"^\S{0,4}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: I \S+\.cc:\d+\]|"  # TensorFlow and XLA
    r"\]: +(?:notice|info|debug): ",  # Pacemaker
    re.IGNORECASE,
)
_WARNING_OR_WORSE = re.compile(
    r"\b(?:WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b|(?:^|[ :\]])[WEF]\d{4} \d\d:\d\d:\d\d\.\d|^\S{0,4}<[0-4]>|"
    r"(?i:(?<![\w-])level=\"?|[\"'](?:level|severity|lvl|loglevel)[\"']\s*:\s*[\"'])(?i:warn(?:ing)?|err(?:or)?|fatal|critical|panic)\b"
)
_PRINTS_FAILURES_SO = re.compile(r"\bNCCL (?:INFO|DEBUG)\b|\bTraceback\b")


_BY_LIBRARY = re.compile(
    r"\bWARNING:(?!root:|__main__:)(?P<name>[a-z_][\w.]*):|\b(?P<name2>[a-z_]\w*(?:\.[a-z_]\w*)+): \[WARNING\]"
)
_STARTS_OTHERS = re.compile(r"launch|run|elastic|train|worker", re.IGNORECASE)
_GIVES_UP = re.compile(r"\b(?:failed|died|giving up)\b", re.IGNORECASE)
"""A library's own logger, named beside its level; a launcher's line holds what another printed."""


def is_caught_by_library(text: str) -> bool:
    """Whether a library warns: what it names it has caught, or it would have raised it.

    Not who starts and watches others: it tells what they raised.
    """
    match = _BY_LIBRARY.search(text[:_LOOKED_AT])
    if match is None or _GIVES_UP.search(text):
        return False
    return _STARTS_OTHERS.search(match["name"] or match["name2"]) is None


_GOES_ON = re.compile(
    r"\b[Ss]kip(?:s|ped|ping)? (?:the )?(?:import|load)\w*|, (?:skipping|ignoring|continuing|disabling|defaulting)\b(?! (?:is|was) not\b)|\bcontinu(?:e|ing) without\b|\bfall(?:ing|s)? back (?:to|on)\b(?!.*\b(?:not|impossible|exiting)\b)|"
    r"\busing (?:the )?(?:un\w+|slow\w*|naive|native|default|pure|eager|\w+ \w+ instead|\w+ instead)\b|\bsome optimi[sz]ations will not be enabled"
)


def goes_on_without(text: str) -> bool:
    """Whether a line says what its program does instead of what it lacks."""
    return _GOES_ON.search(text) is not None


def is_below_warning(text: str) -> bool:
    """Whether a line states a level below a warning and none above it: it may quote another line."""
    start = text[:_LOOKED_AT]
    if _BELOW_WARNING.search(start) is None or _PRINTS_FAILURES_SO.search(start):
        return False
    return not states_warning(text)


def states_warning(text: str) -> bool:
    """Whether a line states a level of a warning or worse."""
    return _WARNING_OR_WORSE.search(text[:_LOOKED_AT]) is not None
