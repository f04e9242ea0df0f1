"""A rule from one labelled line: the text on it that stays the same when the values change."""

import hashlib
import re
from dataclasses import replace

from brctl.evidence.logs.signature import Signature, root
from brctl.model.fault import FaultClass

TAUGHT = "taught"
"""First word of the names of taught rules, and of their files."""

PROBABILITY = 0.8
"""What one labelled case is worth: as much as a site's own rule that states none."""

_SHORTEST = 8
_LONGEST = 120
_VALUE = re.compile(
    r"(?:\S*(?:\d|0x)\S*|(?:/[\w.+-]+){2,}\S*|<[^>]*>|\"[^\"]*\"|'[^']*'|\b[0-9a-f]{8,}\b)",
    re.IGNORECASE,
)


def phrase_of(line: str) -> str:
    """The longest run of words on a line without numbers, paths and quoted names; "" for none."""
    pieces = [piece.strip(" \t:;,.-=[]()|") for piece in _VALUE.split(line)]
    wordy = [piece for piece in pieces if len(piece) >= _SHORTEST and len(piece.split()) > 1]
    return max(wordy, key=len, default="")[:_LONGEST].strip()


def rule_for(phrase: str, fault: FaultClass, source: str) -> Signature:
    """The rule that reads every line with this phrase as a line of this class."""
    digest = hashlib.sha256(f"{fault.value} {phrase.lower()}".encode()).hexdigest()[:8]
    name = f"{TAUGHT}.{fault.value}.{digest}"
    return replace(root(fault, name, phrase.lower(), PROBABILITY, source), beyond_words=True)
