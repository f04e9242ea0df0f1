"""Find names that should be gone from a text; how they were taken out plays no part here."""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from brctl.view.redact import unpacked_words

_WORD = re.compile(r"[^\W_]+")


def names_left(text: str, names: Iterable[str]) -> frozenset[str]:
    """Names that stand in a text, or in what is packed in it, as words of their own."""
    by_first = _by_first_word(names)
    views = (text, unquote(text) if "%" in text else "", *unpacked_words(text))
    return frozenset(name for view in views for name in _left(view, by_first))


def _by_first_word(names: Iterable[str]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        if first := _WORD.match(name):
            found.setdefault(first[0], []).append(name)
    return found


def _left(text: str, by_first: Mapping[str, list[str]]) -> Iterator[str]:
    for match in _WORD.finditer(text):
        for name in by_first.get(match[0], ()):
            if text.startswith(name, match.start()) and _stands_alone(text, match.start(), name):
                yield name


def _stands_alone(text: str, start: int, name: str) -> bool:
    """A name of letters alone may be a part of an identifier, as train is of train_loss."""
    around = text[max(0, start - 1) : start] + text[start + len(name) : start + len(name) + 1]
    inside = "_" in around and not any(map(str.isdigit, name))
    return not inside and not any(map(str.isalnum, around))
