"""Which known rules a line is most like, by the words they share; rare words count most."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from brctl.evidence.logs.signature import Part, Signature
from brctl.evidence.logs.words.line_words import words_of
from brctl.model.fault import FaultClass

LEAST_ALIKE = 0.15
"""Below this two lines share a common word by chance."""

_NOT_WORDS = re.compile(r"\\[a-zA-Z]|[\\\[\](){}?*+|^$.]")
_SPEAKING = frozenset({Part.ROOT, Part.GENERIC, Part.STOPPED, Part.HINT})


@dataclass(frozen=True, slots=True)
class NearRule:
    """A rule that a line is like.

    Attributes:
        name: The rule's name.
        alike: 0 for no word in common, 1 for all of them.
        shared: The words in common, rarest first.
    """

    name: str
    fault: FaultClass | None
    alike: float
    shared: tuple[str, ...]


def nearest_rules(
    line: str, rules: Iterable[Signature], rarity: Callable[[str], float], limit: int = 3
) -> tuple[NearRule, ...]:
    """The rules for causes that share most with a line, most alike first.

    Args:
        line: The line to place.
        rules: The shipped ones and the site's own.
        rarity: Bits that a text surprises among ordinary lines.
        limit: How many to name.
    """
    wanted = _weights(words_of(line), rarity)
    found = [_compare(wanted, rule, rarity) for rule in rules if rule.part in _SPEAKING]
    near = [rule for rule in found if rule.alike >= LEAST_ALIKE]
    return tuple(sorted(near, key=lambda rule: (-rule.alike, rule.name))[:limit])


def _compare(wanted: dict[str, float], rule: Signature, rarity: Callable[[str], float]) -> NearRule:
    own = _weights(words_of(_text_of(rule)), rarity)
    shared = sorted(wanted.keys() & own.keys(), key=lambda word: (-wanted[word], word))
    product = sum(wanted[word] * own[word] for word in shared)
    size = _length(wanted.values()) * _length(own.values())
    alike = round(product / size, 3) if size else 0.0
    return NearRule(rule.name, rule.fault, alike, tuple(shared))


def _text_of(rule: Signature) -> str:
    pattern = _NOT_WORDS.sub(" ", rule.pattern or "")
    return " ".join((*rule.anchors, pattern, rule.name.replace(".", " ").replace("-", " ")))


def _weights(words: Sequence[str], rarity: Callable[[str], float]) -> dict[str, float]:
    return {word: rarity(word) for word in words}


def _length(values: Iterable[float]) -> float:
    return math.sqrt(sum(value * value for value in values))
