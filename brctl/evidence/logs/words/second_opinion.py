"""What the model of words makes of a class that the rules found (decisions 0454, 0458).

Rules read single lines by their form; the model reads every line by its words, and was trained on
other sources. Where both agree, the class was right far more often than the rules state. Where the
rules find nothing at all, the fault that a line's words speak for is claimed, weakly.
"""

from collections.abc import Mapping
from types import MappingProxyType

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.progress.shape import IN_VAIN, TRAINING
from brctl.evidence.logs.signature import healthy
from brctl.evidence.logs.words.word_model import WordModel
from brctl.model.fault import FaultClass

_NO_FAULT = frozenset({FaultClass.NO_FAULT, FaultClass.UNKNOWN})

NO_WORDS: Mapping[FaultClass, float] = MappingProxyType({})
"""The model was not asked."""

WELL = healthy("words.well", "", 0.55, "words of logs in which nothing went wrong")
"""Not matched by text: made from the model's share. Counts only where no line of alarm stands."""

_WELL_FROM = 0.4
_LINES_NEEDED = 2
"""Lines of training: one is printed before the first step fails as well."""

_QUOTED = 400
_NEARER_ONE = 0.6
"""Part of the way to 1 that agreement moves what is stated of a fault."""

_CONFIRMED, _QUESTIONED, _DENIED = 0.3, 0.7, 0.8
"""Health is moved as near to 1 below the first share of the likeliest fault; from the second on so
much of it is left."""

_SURE, _DOUBTED = 0.9, 0.75
"""A model as sure of another fault leaves so much of what the rules state."""

_FOUND_NOTHING = 0.5
"""Unknown stated lower means that no line failed; above, one did and does not say why."""

_NAMED_FROM, _BY_WORDS = 0.5, 0.6
"""From which share on a fault is claimed by words alone, and what it is stated at."""


def second_opinion(
    fault: FaultClass,
    stated: float,
    words: Mapping[FaultClass, float],
    *,
    of_words: bool = False,
) -> tuple[FaultClass, float]:
    """The likeliest class and its stated probability after the model was heard.

    Args:
        fault: What the rules find likeliest.
        stated: How likely they state it.
        words: The model's shares of all classes; empty leaves everything as it is.
        of_words: The rules go by words themselves: that the model reads the same says nothing.
    """
    if not words:
        return fault, stated
    share, spoken = max((share, each) for each, share in words.items() if each not in _NO_FAULT)
    if fault is FaultClass.UNKNOWN:
        named = stated < _FOUND_NOTHING and share >= _NAMED_FROM
        return (spoken, _BY_WORDS) if named else (fault, stated)
    if fault is FaultClass.NO_FAULT:
        return fault, _of_health(stated, share, of_words=of_words)
    if spoken is fault and of_words:
        return fault, stated
    if spoken is fault:
        return fault, _nearer(stated, _NEARER_ONE)
    return fault, stated * (_DOUBTED if share >= _SURE else 1.0)


def _of_health(stated: float, share: float, *, of_words: bool) -> float:
    if share < _CONFIRMED:
        return stated if of_words else _nearer(stated, _NEARER_ONE)
    return stated * (_DENIED if share >= _QUESTIONED else 1.0)


def _nearer(stated: float, part: float) -> float:
    return stated + part * (1.0 - stated)


def proof_of_words(
    words: Mapping[FaultClass, float], lines: Mapping[int, str], model: WordModel, source: str
) -> LogEvent | None:
    """A weak proof of health from a training log with the words of healthy ones; None for none."""
    share = words.get(FaultClass.NO_FAULT, 0.0)
    steps = {
        text: number
        for number, text in lines.items()
        if TRAINING.search(text) and not IN_VAIN.search(text)
    }
    if share < _WELL_FROM or len(steps) < _LINES_NEEDED:
        return None
    spoken = next(iter(model.speaking_lines(FaultClass.NO_FAULT, tuple(steps))), None)
    if spoken is None:
        return None
    text = f"no-fault {share:.2f} by words alone: {spoken.strip()}"
    return LogEvent(WELL, source, steps[spoken], text[:_QUOTED])
