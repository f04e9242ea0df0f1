"""What many nodes say in nearly the same words: one line, with the nodes folded."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FEW_LINES = 16
"""So many lines are still read one by one; more of them are folded by their numbers, too."""

_OWN_PARTS = re.compile(
    r"(?<![^\s'\"()\[\]])(?!(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])[^\s'\"()\[\]]+:\d+\b"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}\b|(?<![\w:])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,7}(?![\w:])"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b"
)
"""Addresses, with and without a port, and unique ids: each node's own, whatever it says. A place on
the PCI bus is no such thing: the same on many nodes, it tells."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Alike(Generic[Key]):
    """One line.

    Attributes:
        key: What all of them have in common beside the text.
        nodes: Who said it, each once, as they came.
        text: One node's own words; `NODE` stands where each of several names itself.
        first: Where the first of them stood among all that was said, from 0.
    """

    key: Key
    nodes: tuple[str, ...]
    text: str
    first: int


def fold_alike(said: Iterable[tuple[Key, str, str]]) -> list[Alike[Key]]:
    """Sentences of one key and one shape together, in the order of their first.

    What a node says twice in one shape is two lines: two GPUs of it are not one.

    Args:
        said: Key, node and text.
    """
    listed = list(said)
    groups: list[Alike[Key]] = []
    for shape in (_shape, _loose_shape):
        groups = _gathered(listed, shape)
        if len(groups) <= FEW_LINES:
            break
    return groups


def _gathered(
    said: Sequence[tuple[Key, str, str]], shape_of: Callable[[str], str]
) -> list[Alike[Key]]:
    members: dict[tuple[Key, str, int], dict[str, str]] = {}
    first: dict[tuple[Key, str, int], int] = {}
    for number, (key, node, text) in enumerate(said):
        shape, turn = shape_of(without_name(text, node)), 0
        while members.get((key, shape, turn), {}).get(node, text) != text:
            turn += 1
        members.setdefault((key, shape, turn), {})[node] = text
        first.setdefault((key, shape, turn), number)
    return [Alike(k[0], tuple(m), _words(m), first[k]) for k, m in members.items()]


def _words(said: Mapping[str, str]) -> str:
    node, text = next(iter(said.items()))
    if len(said) == 1:
        return text
    plain = {without_name(words, name) for name, words in said.items()}
    return plain.pop() if len(plain) == 1 else f"{text}, on {node}"


def without_name(text: str, node: str) -> str:
    """The text with `NODE` for the node's own name, which would keep equal texts apart.

    Examples:
        >>> without_name("n1: no route to n1, n10 answers", "n1")
        'NODE: no route to NODE, n10 answers'
    """
    if not node or node not in text:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(node)}(?![\w-]|\.\w)", "NODE", text)


def _shape(text: str) -> str:
    return _OWN_PARTS.sub("#", text)


def _loose_shape(text: str) -> str:
    return _NUMBER.sub("#", _shape(text))
