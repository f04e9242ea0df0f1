"""Whether what a rule matched was seen: not typed, chosen, counted at zero, feared, denied or over."""

# ruff: noqa: E501 - a pattern is read whole

import re

from brctl.evidence.logs.phrasing.commands import is_command
from brctl.evidence.logs.quiet_rows import counts_nothing, is_option, is_quiet_row
from brctl.evidence.logs.signature import Part, Signature
from brctl.model.fault import FaultClass

ACCUSING = frozenset({Part.ROOT, Part.GENERIC, Part.HINT, Part.STOPPED, Part.VICTIM})
"""Parts that say something bad of somebody."""

_NEAR = 120
"""Characters before a match in which the words stand that take it back."""

_BEHIND = 60
"""Characters behind a match in which its line may tell that it is over."""

_GOT_OVER = re.compile(
    r"(?<!\bnot )(?<!n't )(?<!\bnever )(?<!\bbe )(?<!\bbeen )(?<!\bto )(?<!\bhalf )(?<!ly )(?<!\buntil )(?<!\bunless )(?<!\bonce )(?<!\byet )(?<!\d )\b(?:recovered|restored|re-?established|renewed|reconnected|repaired)\b(?=\W*(?:$|[.,;)\]]|\b(?:after|in|on|by|at|from|and)\b))(?!.*\b(?:again|twice|then|yet|but)\b)",
    re.IGNORECASE,
)
"""Words behind a failure, on its own line, that it is over."""

_FEARED = re.compile(
    r"\b(?:may|might|can|could|would)\b(?! not\b)[^.,;]{0,40}\b(?:cause|fail with|lead to|result in|raise|trigger)\b[^.,;]{0,60}$|"
    r"\b(?:(?:prevent|avoid)s?|against|in case of|handlers? for|(?:checking|watching|scanning|looking|testing) for)\b(?:(?!\b(?:as|because|since)\b)[^.,;:]){0,40}$",
    re.IGNORECASE,
)
"""Words before a failure, in its sentence, that it is only thought of."""

_DENIED_BEFORE = re.compile(
    r"\b(?:not (?:an? |the |any |due to |caused by |because of )|without (?:an? |any )?|never (?:an? )?|ruled out:? |no (?:sign|trace|evidence) of (?:an? )?)$",
    re.IGNORECASE,
)


def names_only(signature: Signature, match: re.Match[str]) -> bool:
    """Whether a row matched a command, or, accusing, a zero, an option, a fear or what is over.

    What hardware and the kernel tell is over by rows of its own: flapping is seen by its counts.
    """
    if signature.part is not Part.CONTEXT and is_command(match.string, match.start()):
        return True
    if signature.part not in ACCUSING:
        return False
    if is_quiet_row(match.string) or counts_nothing(match):
        return True
    if signature.physical:
        return False
    if is_option(match) or is_only_feared(match):
        return True
    return _may_be_over(signature) and is_got_over(match)


def _may_be_over(signature: Signature) -> bool:
    """A number that is none stays one, and a stop has happened."""
    return signature.part is not Part.STOPPED and signature.fault is not FaultClass.NUMERIC_NAN


def is_got_over(match: re.Match[str]) -> bool:
    """Whether the words right behind what a rule matched tell that it is over."""
    text, end = match.string, match.end()
    return _GOT_OVER.search(text, end, end + _BEHIND) is not None


def is_only_feared(match: re.Match[str]) -> bool:
    """Whether what a rule matched is denied, or might happen, or what something is done against."""
    text, start = match.string, max(0, match.start() - _NEAR)
    if _DENIED_BEFORE.search(text, start, match.start()) is not None:
        return True
    return _FEARED.search(text, start, match.end()) is not None
