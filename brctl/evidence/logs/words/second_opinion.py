"""What the model of words makes of a class that the rules found (decision 0428).

Rules read single lines; the model weighs every word of the log and was trained on other sources.
It names no class of a fault here. Where both agree, the class was right more often than the rules
state; where the model is sure of another and gives the rules' class nothing, hardly ever.
"""

from collections.abc import Mapping
from types import MappingProxyType

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.progress.shape import IN_VAIN, TRAINING
from brctl.evidence.logs.signature import healthy
from brctl.evidence.logs.words.word_model import WordModel
from brctl.model.fault import FaultClass

NO_WORDS: Mapping[FaultClass, float] = MappingProxyType({})
"""The model was not asked."""

WELL = healthy("words.well", "", 0.55, "words of logs in which nothing went wrong")
"""Not matched by text: made from the model's share. Counts only where no line of alarm stands."""

_WELL_FROM = 0.4
_LINES_NEEDED = 2
"""Lines of training: one is printed before the first step fails as well."""

_QUOTED = 400
_SURE = 0.7
_NOTHING = 0.02

_NEARER_ONE: Mapping[FaultClass, float] = {FaultClass.NO_FAULT: 0.6, FaultClass.UNKNOWN: 0.4}
"""Part of the way to 1 that agreement moves what is stated; of a fault the smaller one."""

_FAULT_NEARER_ONE = 0.2
_NODE_UNSHARED = 0.4
"""The same for a node's health that the model neither finds likeliest nor denies (0429)."""

_ONE_LINE = 0.6
"""A fault stated lower rests on a weak line, which the model has read too: no second witness."""

_HARDLY, _LESS = 0.5, 0.8


def second_opinion(
    fault: FaultClass,
    stated: float,
    words: Mapping[FaultClass, float],
    *,
    of_a_node: bool = False,
) -> float:
    """The stated probability of the rules' class after the model was heard.

    Args:
        fault: What the rules find likeliest.
        stated: How likely they state it.
        words: The model's shares of all classes; empty leaves everything as it is.
        of_a_node: Only a node's own lines prove health, none of a job.
    """
    if not words:
        return stated
    likeliest = max(words, key=lambda each: (words[each], each.value))
    if likeliest is fault:
        if fault not in _NEARER_ONE and stated < _ONE_LINE:
            return stated
        return stated + _NEARER_ONE.get(fault, _FAULT_NEARER_ONE) * (1.0 - stated)
    if fault is FaultClass.UNKNOWN or words.get(fault, 0.0) >= _NOTHING:
        unshared = fault is FaultClass.NO_FAULT and of_a_node
        return stated + (_NODE_UNSHARED if unshared else 0.0) * (1.0 - stated)
    return stated * (_HARDLY if words[likeliest] >= _SURE else _LESS)


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
