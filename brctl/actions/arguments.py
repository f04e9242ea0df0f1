"""Read a verb's arguments after expansion; an argument may still be unknown while planning."""

from collections.abc import Sequence

from brctl.actions.contract import ActionFailed
from brctl.model.errors import UsageError
from brctl.model.nodeset import expand
from brctl.model.runs.playbook import Arguments, Json
from brctl.model.units import parse_duration_s
from brctl.playbook.expressions import KNOWN_AFTER_RUN

UNKNOWN_TEXT = str(KNOWN_AFTER_RUN)


def is_known(args: Arguments, *keys: str) -> bool:
    """Whether none of these arguments waits for an earlier step."""
    return all(args.get(key) != UNKNOWN_TEXT for key in keys)


def nodes(args: Arguments, key: str) -> tuple[str, ...]:
    """Node names from a list or a folded set."""
    value = args.get(key)
    try:
        if isinstance(value, str):
            return expand(value)
        if isinstance(value, Sequence):
            return tuple(name for item in value for name in expand(str(item)))
    except UsageError as exc:
        raise ActionFailed(f"`{key}`: {exc}") from exc
    raise ActionFailed(f"`{key}` must name nodes, not {value!r}")


def text(args: Arguments, key: str, default: str | None = None) -> str:
    """A text argument."""
    value: Json = args.get(key, default)
    if not isinstance(value, str):
        raise ActionFailed(f"`{key}` must be text, not {value!r}")
    return value


def texts(args: Arguments, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A list of texts."""
    value = args.get(key, list(default))
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ActionFailed(f"`{key}` must be a list, not {value!r}")
    return tuple(str(item) for item in value)


def count(args: Arguments, key: str, default: int | None = None) -> int:
    """A whole number of at least zero."""
    value: Json = args.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ActionFailed(f"`{key}` must be a whole number, not {value!r}")
    return value


def seconds(args: Arguments, key: str, default: str | None = None) -> float:
    """Seconds of a duration; inputs of type duration arrive as numbers."""
    value: Json = args.get(key, default)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return parse_duration_s(str(value))
    except ValueError as exc:
        raise ActionFailed(f"`{key}`: {exc}") from exc
