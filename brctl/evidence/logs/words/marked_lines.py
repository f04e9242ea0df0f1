"""The lines of a log with what the rules make of each: what the model of words hears."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log1p

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import SPEAKING, Part, Signature
from brctl.evidence.logs.unexplained import template_of
from brctl.evidence.logs.words.components import tells_of_failure
from brctl.evidence.logs.words.line_words import without_zeros
from brctl.model.fault import FaultClass

LINES_READ = 1000
"""Lines of one input that are looked at: the first and the last ones."""

_PARTS = (
    Part.VICTIM, Part.TEARDOWN, Part.BENIGN, Part.HEALTHY, Part.CONTEXT, Part.UNEXPLAINED,
)  # fmt: skip
FLAGS = 2 + len(_PARTS)
"""Of a line: a rule names a class, a rule of each of these parts read it, it tells of failure."""

FACTS = 5
"""Numbers that `facts_of` tells of a whole log."""


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """One line, and what the rules make of it.

    Attributes:
        number: Its number in the log.
        named: Places in SPEAKING with the class that a rule of that part names.
        flags: FLAGS truths about it, in their order.
    """

    number: int
    text: str
    named: frozenset[tuple[int, FaultClass]]
    flags: tuple[bool, ...]

    def has(self, part: Part) -> bool:
        """Whether a rule of a part that names no class read it."""
        return self.flags[1 + _PARTS.index(part)]

    @property
    def tells_of_failure(self) -> bool:
        return self.flags[-1]


def marked_lines(lines: Mapping[int, str], events: Sequence[LogEvent]) -> tuple[MarkedLine, ...]:
    """The lines that are looked at, one of each form: ranks and steps repeat theirs.

    Of one form are lines that differ in numbers only, count or count nothing, and that the same
    rules read; what rules kept only so many lines of stands for the rest of them. What a site calls
    harmless is not heard.
    """
    rules: dict[int, list[Signature]] = defaultdict(list)
    for event in events:
        rules[event.line].append(event.signature)
    forms: dict[str, dict[frozenset[str], MarkedLine]] = defaultdict(dict)
    for number, text in _ends([row for row in lines.items() if row[1].strip()]):
        read = rules[number]
        alike = forms[template_of(without_zeros(text))]
        alike.setdefault(frozenset(rule.name for rule in read), _marked(number, text, read))
    harmless = {event.signature.name for event in events if _is_harmless_here(event.signature)}
    return tuple(
        line
        for alike in forms.values()
        for names, line in alike.items()
        if (names or len(alike) == 1) and harmless.isdisjoint(chain.from_iterable(alike))
    )


def _is_harmless_here(rule: Signature) -> bool:
    return rule.part is Part.BENIGN and rule.beyond_words


def _ends(rows: Sequence[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    if len(rows) <= LINES_READ:
        return rows
    return [*rows[: LINES_READ // 2], *rows[-LINES_READ // 2 :]]


def _marked(number: int, text: str, rules: Sequence[Signature]) -> MarkedLine:
    named = frozenset(
        (SPEAKING.index(rule.part), rule.fault)
        for rule in rules
        if rule.part in SPEAKING and rule.fault is not None and _speaks_by_itself(rule)
    )
    parts = {rule.part for rule in rules}
    flags = (
        bool(named),
        *(part in parts for part in _PARTS),
        tells_of_failure(without_zeros(text)),
    )
    return MarkedLine(number, text, named, flags)


def _speaks_by_itself(rule: Signature) -> bool:
    """Whether one line of it accuses: a corrected error does so only by how often it comes."""
    return rule.fault is not FaultClass.UNKNOWN and not rule.per_minute


def facts_of(lines: Sequence[MarkedLine]) -> tuple[float, ...]:
    """FACTS about a log as a whole: what speaks for health, or for a cause that no line tells."""
    return (
        float(any(line.has(Part.HEALTHY) for line in lines)),
        log1p(sum(line.tells_of_failure for line in lines)),
        log1p(len(lines)),
        float(any(line.has(Part.VICTIM) for line in lines)),
        float(any(line.has(Part.TEARDOWN) for line in lines)),
    )
