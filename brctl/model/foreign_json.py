"""JSON from a node, a program or an alert sender: bounded in size, depth and numbers.

What `json` alone lets through raises later, far from who is to blame: an integer of 400 digits when
it becomes a float, one of 5,000 when it becomes text, a deep list in the next recursion.
"""

import json
import math

SIZE_LIMIT_BYTES = 64 << 20
DEPTH_LIMIT = 60
INTEGER_LIMIT = 1 << 63
"""What sqlite and msgpack hold."""
FLOAT_LIMIT = 1e100
"""Its square is still a number."""


class ForeignJsonError(ValueError):
    """The text is no JSON that we read."""


def read_foreign_json(text: bytes | str, *, finite: bool = True) -> object:
    """The value of a JSON text; without `finite` NaN and Infinity are values too.

    Raises:
        ForeignJsonError: It is none, too large, too deep, or holds a number that nothing measures.
    """
    if len(text) > SIZE_LIMIT_BYTES:
        raise ForeignJsonError(f"more than {SIZE_LIMIT_BYTES >> 20} MiB")
    try:
        value: object = json.loads(
            text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant if finite else float,
        )
    except ForeignJsonError:
        raise
    except RecursionError as exc:
        raise ForeignJsonError(f"nested more than {DEPTH_LIMIT} deep") from exc
    except ValueError as exc:
        raise ForeignJsonError(str(exc)[:200]) from exc
    if is_deep(value):
        raise ForeignJsonError(f"nested more than {DEPTH_LIMIT} deep")
    escaped = b"\\ud" if isinstance(text, bytes) else "\\ud"
    return _writable(value) if escaped in text.lower() else value  # type: ignore[operator]  # both of one type


def _writable(value: object) -> object:
    """Without lone surrogates: they pass through JSON and break every later write as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_writable(inner) for inner in value]
    if isinstance(value, dict):
        return {str(_writable(key)): _writable(inner) for key, inner in value.items()}
    return value


def is_plain_number(value: object) -> bool:
    """Whether a value that was read elsewhere is a number this module would have let through."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return -INTEGER_LIMIT <= value < INTEGER_LIMIT
    return isinstance(value, float) and abs(value) <= FLOAT_LIMIT


def _integer(text: str) -> int:
    # The length first: turning 100,000 digits into a number is quadratic.
    value = int(text) if len(text) <= 20 else INTEGER_LIMIT
    if not is_plain_number(value):
        raise ForeignJsonError(f"an integer of {len(text)} digits")
    return value


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or not is_plain_number(value):
        raise ForeignJsonError(f"the number {text[:20]}")
    return value


def _constant(name: str) -> None:
    raise ForeignJsonError(f"{name} is not JSON")


def is_deep(value: object) -> bool:
    """Whether lists, tuples and dictionaries are nested deeper than we read; without recursion."""
    level = [value]
    for _ in range(DEPTH_LIMIT):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list | tuple)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list | tuple)
        ]
        if not level:
            return False
    return True
