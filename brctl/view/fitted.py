"""Lines of a page broken where a terminal ends: between words, and below the column they stand in.

A terminal breaks anywhere, also within a name that one has to type. Nothing is left out here.
"""

import re
from collections.abc import Iterator, Sequence

LEAST = 40
"""A narrower terminal is written to as if it had these columns."""

_ROOM = 30
"""The least a column may have for its words; a column with less begins on a line of its own."""

_CELL = re.compile(r"\S+(?: \S+)*")
_COMMANDS = ("next:", "try:", "ask:", "ask  ", "undo:", "undo  ", "by hand:", "brctl ")
"""What follows is copied as a whole: the terminal may break it, and still copies one line."""


def fitted(text: str, width: int) -> str:
    """The text in lines of at most `width` columns, where its words allow it.

    Examples:
        >>> print(fitted("what:   a GPU fell off the bus, and nobody could tell why", 40))
        what:   a GPU fell off the bus, and
                nobody could tell why
    """
    width = max(width, LEAST)
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> Sequence[str]:
    if len(line.rstrip()) <= width or line.lstrip().startswith(_COMMANDS):
        return [line]
    starts = [match.start() for match in _CELL.finditer(line)]
    start = max((s for s in starts if _has_room(line, s, width)), default=starts[0])
    # A sentence from the margin on goes on a little to the right of it, or it looks like two.
    indent = start if start > starts[0] else start + 2
    return list(_wrapped(line[:start], line[start:], indent, width))


def _has_room(line: str, start: int, width: int) -> bool:
    """Whether the column that begins there has room for words, and for its first one."""
    first = line[start:].split(" ", 1)[0]
    return start <= width - max(_ROOM, len(first))


def _wrapped(before: str, rest: str, indent: int, width: int) -> Iterator[str]:
    line = before
    for word, gap in _words(rest, width - indent):
        if line.strip() and len(line) + len(word) > width and line != before:
            yield line.rstrip()
            line = " " * indent
        line += word + gap
    yield line.rstrip()


def _words(text: str, room: int) -> Iterator[tuple[str, str]]:
    """Words with what follows them; a node set that is too long for a line ends at its commas."""
    for match in re.finditer(r"(\S+)(\s*)", text):
        word, gap = match[1], match[2][:2]
        pieces = re.findall(r"[^,]+,?|,", word) if len(word) > room else [word]
        yield from ((piece, "") for piece in pieces[:-1])
        yield pieces[-1], gap
