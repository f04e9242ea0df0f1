"""Whether what a rule matched was seen: not typed, chosen, counted at zero, feared, denied or over."""

# ruff: noqa: E501 - a pattern is read whole

import re

from brctl.evidence.logs.phrasing.commands import is_command
from brctl.evidence.logs.quiet_rows import counts_nothing, is_option, is_quiet_row
from brctl.evidence.logs.signature import Part, Signature

ACCUSING = frozenset({Part.ROOT, Part.GENERIC, Part.HINT, Part.STOPPED, Part.VICTIM})
"""Parts that say something bad of somebody."""

_OUTLASTS = 0.9
"""A row as strong as this tells of what ended a job, though its node or card came back."""

_NEAR = 120
"""Characters before a match in which the words stand that take it back."""

_GOT_OVER = re.compile(
    r"(?<!\bnot )(?<!n't )(?<!\bnever )(?<!\bbe )(?<!\bbeen )(?<!\bto )(?<!\bhalf )\b(?:recovered|restored|re-?established|renewed|reconnected|repaired)\b(?=\W*(?:$|[.,;)\]]|\b(?:after|to|in|on|by|at|from|and|for)\b))|"
    r"\b(?:, continuing|; continuing)\s*$",
    re.IGNORECASE,
)
"""Words behind a failure, on its own line, that it is over."""

_FEARED = re.compile(
    r"\b(?:may|might|can|could|would)\b[^.;]{0,40}\b(?:cause|fail with|lead to|result in|raise|trigger)\b[^.;]{0,60}$|"
    r"\b(?:(?:prevent|avoid)s?|against|in case of|handlers? for|(?:checking|watching|scanning|looking|testing) for)\b[^.;:]{0,40}$",
    re.IGNORECASE,
)
"""Words before a failure, in its sentence, that it is only thought of."""

_DENIED_BEFORE = re.compile(
    r"\b(?:not (?:an? |the |any |due to |caused by |because of )|without (?:an? |any )?|never (?:an? )?|ruled out:? |no (?:sign|trace|evidence) of (?:an? )?)$",
    re.IGNORECASE,
)

_ERROR = re.compile(r"\b(?:ERROR|CRITICAL|FATAL)\b")
_TRY = re.compile(
    r"\b(?:attempt|try|retry|tries|retries)\W{0,3}(?P<now>\d{1,3}) ?(?:/|of|out of) ?(?P<most>\d{1,3})\b",
    re.IGNORECASE,
)


def names_only(signature: Signature, match: re.Match[str]) -> bool:
    """Whether a row matched a command, or, accusing, the name of a counter at zero or an option."""
    if signature.part is not Part.CONTEXT and is_command(match.string, match.start()):
        return True
    if signature.part not in ACCUSING:
        return False
    if is_quiet_row(match.string) or counts_nothing(match):
        return True
    if signature.strength < _OUTLASTS and is_got_over(match):
        return True
    return not signature.physical and (is_option(match) or is_only_feared(match))


def is_got_over(match: re.Match[str]) -> bool:
    """Whether the line of what a rule matched tells that it is over, or that it is tried again."""
    text = match.string
    if _GOT_OVER.search(text, match.start()) is not None:
        return True
    tried = None if _ERROR.search(text) else _TRY.search(text)
    return tried is not None and int(tried["now"]) < int(tried["most"])


def is_only_feared(match: re.Match[str]) -> bool:
    """Whether what a rule matched is denied, or might happen, or what something is done against."""
    text, start = match.string, max(0, match.start() - _NEAR)
    if _DENIED_BEFORE.search(text, start, match.start()) is not None:
        return True
    return _FEARED.search(text, start, match.end()) is not None
