"""What the model of words makes of a class that the rules found (decisions 0458, 0462).

Rules read single lines by their form; the model hears every line, by its words and by what the
rules make of it, and was trained on other sources. Where both agree, the class was right far more
often than the rules state; where they do not, the surer one was right about as often as it says.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from brctl.evidence.logs.claim import WITHDRAWN
from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.severity import states_warning
from brctl.evidence.logs.signature import Part, aside, healthy
from brctl.evidence.logs.unexplained import UNEXPLAINED
from brctl.evidence.logs.words.word_model import QUIET, Heard
from brctl.model.fault import FaultClass, Origin
from brctl.model.fault_catalogue import CATALOGUE

NO_WORDS: Mapping[FaultClass, float] = MappingProxyType({})
"""The model was not asked."""

WELL = healthy("words.well", "", 0.7, "words of logs in which nothing went wrong")
"""Not matched by text: made from the model's share. Counts only where no line of alarm stands."""

ORDINARY = aside(Part.CONTEXT, "words.ordinary", "", "words of alarm in logs that are well")
"""Not matched by text: takes the place of an alarm that no rule knows and the model does."""

_WELL_FROM, _WELL_OF_FEW = 0.7, 0.85
"""Shares of health from which on words prove it, in a log of many lines and of few. In one of many
none has to speak louder than the rest: 47 of 51 such logs were well (0466)."""

_MANY, _FORMS = 8, 2
"""Lines that are many, and of how many forms: a start of four may be well and proves nothing."""

_LAST = 3
"""Lines that a log ends with."""

_QUOTED = 400

_SURE, _LIKELY = 0.6, 0.4
"""Shares from which on the model was right in four of five logs, and in every second."""

_NEARER_ONE = 0.6
"""Part of the way to 1 that a sure model that agrees moves what is stated."""

_UNSEEN, _DENIED = 0.85, 0.7
"""What is left of a fault that the model hardly sees, and where it sees another instead."""

_HEALTH_SURE = 0.8
"""The share of health that confirms it. Below `_SURE` it was wrong in twelve of fifteen logs that
neither rules nor model had seen: such health is not claimed."""

_FOUND_NOTHING = 0.5
"""Unknown stated lower means that no line failed; above, one did and does not say why."""

_NAMED_BY_FAILURE, _BY_WORDS = 0.3, 0.6
"""The share from which on a line that failed without a reason has its words' one (9 of 11 right;
where nothing failed it takes `_LIKELY`, 8 of 12), and what a class is stated at by words."""

_SIDE = 0.45
"""The share of one side's classes from which on an unknown cause is called that side's (0466)."""

_NEVER_BY_WORDS = frozenset({*QUIET, FaultClass.GPU_SLOW, FaultClass.STRAGGLER_SLOW})
"""Readings tell these, and a listing of clocks or of waiting has the same words where all is well:
of four that words alone called slow none was (0466)."""

_ABOVE_HEALTH = 2.0
"""A fault that is not so many times as likely as health is not claimed by words."""


def second_opinion(
    fault: FaultClass,
    stated: float,
    words: Mapping[FaultClass, float],
    *,
    of_words: bool = False,
    consequences: Collection[FaultClass] = (),
    some_well: bool = False,
) -> tuple[FaultClass, float]:
    """The likeliest class and its stated probability after the model was heard.

    Args:
        fault: What the rules find likeliest.
        stated: How likely they state it.
        words: The model's shares of all classes; empty leaves everything as it is.
        of_words: The rules go by words themselves: that the model hears the same says nothing.
        consequences: Classes whose lines the rules saw and found to follow from another.
        some_well: A line of the log says that something went well.
    """
    if not words:
        return fault, stated
    likeliest = max(words, key=lambda each: words[each])
    if fault is FaultClass.UNKNOWN:
        least = _LIKELY if stated < _FOUND_NOTHING else _NAMED_BY_FAILURE
        least = _SURE if some_well else least
        least = max(least, _ABOVE_HEALTH * words.get(FaultClass.NO_FAULT, 0.0))
        claims = likeliest not in _NEVER_BY_WORDS and words[likeliest] >= least
        return (likeliest, _BY_WORDS) if claims else (fault, stated)
    if fault is FaultClass.NO_FAULT and words[fault] < _SURE:
        return FaultClass.UNKNOWN, WITHDRAWN
    if fault is FaultClass.NO_FAULT:
        return fault, stated if of_words else _of_health(stated, words[fault])
    denied = likeliest not in (fault, *QUIET) and words[likeliest] >= _LIKELY
    if denied and words[likeliest] >= _SURE and likeliest not in consequences:
        return likeliest, _BY_WORDS
    return fault, stated if of_words else _of_fault(stated, words[fault], denied=denied)


def side_of_words(words: Mapping[FaultClass, float]) -> Origin:
    """Whose the classes are that together are likeliest; unknown where they hold too little."""
    sides = dict.fromkeys(Origin, 0.0)
    for fault, share in words.items():
        sides[CATALOGUE[fault].origin] += share
    likeliest = max(sides, key=lambda side: sides[side])
    return likeliest if sides[likeliest] >= _SIDE else Origin.UNKNOWN


def _of_health(stated: float, share: float) -> float:
    return _nearer(stated, _NEARER_ONE) if share >= _HEALTH_SURE else stated


def _of_fault(stated: float, share: float, *, denied: bool) -> float:
    if share >= _SURE:
        return _nearer(stated, _NEARER_ONE)
    if share >= _LIKELY:
        return max(stated, _BY_WORDS)
    return stated * (_DENIED if denied else _UNSEEN)


def _nearer(stated: float, part: float) -> float:
    return stated + part * (1.0 - stated)


def proof_of_words(heard: Heard, source: str, count: int) -> LogEvent | None:
    """A weak proof of health from a log whose lines speak for it and for nothing else.

    A line that its own program calls a warning, and that the model does not know from logs that are
    well, is against it.

    Args:
        heard: What the model made of the log.
        source: The log's name.
        count: Lines of the log; one of each form is heard.
    """
    share = heard.shares.get(FaultClass.NO_FAULT, 0.0)
    many = count >= _MANY and len(heard.lines) >= _FORMS
    if share < (_WELL_FROM if many else _WELL_OF_FEW):
        return None
    spoken = heard.speaking(FaultClass.NO_FAULT) or (heard.lines if many else ())
    if not spoken or _warns(heard):
        return None
    text = f"no-fault {share:.2f} by words alone: {spoken[0].text.strip()}"
    return LogEvent(WELL, source, spoken[0].number, text[:_QUOTED])


def _warns(heard: Heard) -> bool:
    warned = {line.number for line in heard.lines if states_warning(line.text)}
    return bool(warned) and not warned <= heard.ordinary_lines()


def with_ordinary(
    events: Sequence[LogEvent], heard: Heard, numbers: Sequence[int]
) -> list[LogEvent]:
    """The events, where alarms that the model knows from logs that are well only stand in view.

    An alarm that no proof of a rule follows stays one, and so does what a log ends with: an error
    that nothing follows ended something.

    Args:
        events: What was read in the log.
        heard: What the model made of it.
        numbers: The numbers of its lines, in order.
    """
    ordinary = heard.ordinary_lines()
    proofs = [e.newest().line for e in events if _is_proof_of_rule(e)]
    until = max(proofs) if proofs else (numbers[-_LAST] if len(numbers) > _LAST else 0)
    known = {
        e.family
        for e in events
        if e.signature is UNEXPLAINED and e.line in ordinary and e.newest().line < until
    }
    return [replace(e, signature=ORDINARY) if e.family in known else e for e in events]


def _is_proof_of_rule(event: LogEvent) -> bool:
    return event.signature.part is Part.HEALTHY and event.signature is not WELL
