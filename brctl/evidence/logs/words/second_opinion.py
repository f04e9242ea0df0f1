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

_FORMS_NEEDED, _MOSTLY = 6, 0.65
_SPEAKS_FOR_A_FAULT = 0.2
"""An excerpt of so many forms of line, of which so many are known from sound logs: 8 of 10 were
sound among 463 logs, 5 of 5 beside no line of alarm (0458)."""

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
        return fault, _of_health(stated, share)
    if spoken is fault and of_words:
        return fault, stated
    if spoken is fault:
        return fault, _nearer(stated, _NEARER_ONE)
    return fault, stated * (_DOUBTED if share >= _SURE else 1.0)


def _of_health(stated: float, share: float) -> float:
    if share < _CONFIRMED:
        return _nearer(stated, _NEARER_ONE)
    return stated * (_DENIED if share >= _QUESTIONED else 1.0)


def _nearer(stated: float, part: float) -> float:
    return stated + part * (1.0 - stated)


def proof_of_words(
    words: Mapping[FaultClass, float], lines: Mapping[int, str], model: WordModel, source: str
) -> LogEvent | None:
    """A weak proof of health from the words of healthy logs; None for none.

    Lines of training, or an excerpt most of which is known from sound logs.
    """
    spoken = _of_training(words, lines, model) or _all_known(words, lines, model)
    if not spoken:
        return None
    number = next(number for number, text in lines.items() if text == spoken)
    share = words[FaultClass.NO_FAULT]
    text = f"no-fault {share:.2f} by words alone: {spoken.strip()}"
    return LogEvent(WELL, source, number, text[:_QUOTED])


def _of_training(
    words: Mapping[FaultClass, float], lines: Mapping[int, str], model: WordModel
) -> str:
    """The line of training that speaks most for health, where several do."""
    steps = [text for text in lines.values() if TRAINING.search(text) and not IN_VAIN.search(text)]
    if words.get(FaultClass.NO_FAULT, 0.0) < _WELL_FROM or len(steps) < _LINES_NEEDED:
        return ""
    return next(iter(model.speaking_lines(FaultClass.NO_FAULT, steps)), "")


def _all_known(
    words: Mapping[FaultClass, float], lines: Mapping[int, str], model: WordModel
) -> str:
    """The first line known to be sound, where most forms are and none speaks for a fault."""
    faults = [share for fault, share in words.items() if fault not in _NO_FAULT]
    if not faults or max(faults) >= _SPEAKS_FOR_A_FAULT:
        return ""
    sound, forms = model.sound_lines(tuple(lines.values()))
    known = forms >= _FORMS_NEEDED and len(sound) >= _MOSTLY * forms
    return sound[0] if known else ""
