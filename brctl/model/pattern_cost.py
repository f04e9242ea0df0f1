"""Whether a site's regular expression can be trusted with any line: no repeat inside a repeat.

Python's engine tries every way to divide a line between repeats that share text. One repeat costs a
walk along the line, a repeat of repeats twice as much with each character. What is refused here is
more than what is dangerous, and can always be written otherwise.
"""

from collections.abc import Iterable, Iterator, Sequence
from re import _constants as names  # type: ignore[attr-defined]  # private, and the only parser
from re import _parser as parser  # type: ignore[attr-defined]  # that agrees with the engine

FEW = 4
"""A repeat of at most so many rounds multiplies, and does not explode."""

LONG = 128
"""A repeat that may run further than this walks the line; a pattern may do so `FEW` times."""

_REPEATS = (names.MAX_REPEAT, names.MIN_REPEAT)
_Token = tuple[object, object]


def why_costly(pattern: str) -> str | None:
    """What makes a valid pattern slow on some lines, with what to write; None when nothing does."""
    walks = 0
    for rounds, body in _repeats(parser.parse(pattern)):
        walks += rounds > LONG
        if rounds > FEW and any(kind in (*_REPEATS, names.BRANCH) for kind, _ in _all(body)):
            return (
                "repeats something that repeats or has alternatives, which takes for ever on some"
                f" lines; write the inner one alone, or at most {FEW} rounds of the outer one"
            )
    if walks > FEW:
        return f"has {walks} repeats without a bound, at most {FEW}; write .{{0,80}} for .*"
    return None


def _repeats(tokens: Iterable[_Token]) -> Iterator[tuple[int, Sequence[_Token]]]:
    """Every repeat with the most rounds it may take, and what it repeats."""
    for kind, value in _all(tokens):
        if kind in _REPEATS and isinstance(value, tuple):
            yield int(value[1]), value[2]


def _all(tokens: Iterable[_Token]) -> Iterator[_Token]:
    """Every token, those inside of others too."""
    for kind, value in tokens:
        yield kind, value
        yield from _all(_inside(value))


def _inside(value: object) -> Iterator[_Token]:
    """The tokens that a token's value holds, however deep its own lists lie."""
    if isinstance(value, parser.SubPattern):
        yield from value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _inside(part)
