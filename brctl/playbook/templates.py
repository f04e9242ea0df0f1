"""`$(...)` inside texts: a text that is one reference keeps the type of its value."""

from collections.abc import Iterator, Mapping, Sequence

from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Json
from brctl.playbook.expressions import (
    KNOWN_AFTER_RUN,
    ExpressionError,
    Scope,
    Value,
    evaluate,
    parse_expression,
)

OPENING = "$("


def references(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and inner text of every `$(...)`; brackets and quotes inside are matched.

    Raises:
        ExpressionError: A `$(` is never closed.
    """
    start = text.find(OPENING)
    while start >= 0:
        end = _closing(text, start + len(OPENING))
        yield start, end + 1, text[start + len(OPENING) : end]
        start = text.find(OPENING, end)


def _closing(text: str, position: int) -> int:
    depth, quote = 1, ""
    for index in range(position, len(text)):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char == "(") - (char == ")")
            if depth == 0:
                return index
    raise ExpressionError(f"{text!r}: '$(' is never closed")


def expand(value: Json, scope: Scope) -> Json:
    """A value with every `$(...)` replaced; what is only known after the run says so in words.

    Raises:
        ExpressionError: A reference cannot be evaluated.
    """
    expanded = expand_value(value, scope)
    return str(expanded) if expanded is KNOWN_AFTER_RUN else expanded  # type: ignore[return-value]  # Json remains


def expand_value(value: Json, scope: Scope) -> Value:
    """As `expand`, but a text that is one unknown reference stays KNOWN_AFTER_RUN."""
    if isinstance(value, str):
        return _expand_text(value, scope)
    if isinstance(value, Mapping):
        return {key: expand(item, scope) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [expand(item, scope) for item in value]
    return value


def _expand_text(text: str, scope: Scope) -> Value:
    found = list(references(text))
    if len(found) == 1 and found[0][:2] == (0, len(text)):
        return evaluate(found[0][2], scope)
    parts, last = [], 0
    for start, end, inner in found:
        parts += [text[last:start], _as_text(evaluate(inner, scope))]
        last = end
    return "".join([*parts, text[last:]])


def _as_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return fold(str(item) for item in value)
    return str(value)


def expressions_in(
    value: Json, at: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every expression inside a value, with the place it stands at."""
    if isinstance(value, str):
        for _, _, inner in references(value):
            parse_expression(inner)
            yield at, inner
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from expressions_in(item, (*at, key))
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from expressions_in(item, (*at, index))
