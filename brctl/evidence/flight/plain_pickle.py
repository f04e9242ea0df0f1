"""Reads pickles of plain data without the pickle machine: no class, no call, no import can happen.

A dump comes from a node and is untrusted. The standard loader runs whatever a pickle names; even
with names refused, one opcode makes its memo table grow to gigabytes. Here a small interpreter
knows the opcodes that build None, booleans, numbers, text, lists, tuples and dictionaries, and
refuses every other one.
"""

import pickletools
from collections.abc import Callable

from brctl.model.foreign_json import DEPTH_LIMIT, is_deep, is_plain_number

SIZE_LIMIT_BYTES = 64 << 20
VALUE_LIMIT = 2_000_000
"""A full ring buffer of 20,000 entries with frames has fewer values."""
TEXT_LIMIT = 1 << 20
"""The ranks of a group are one text: 114 KB for 16,384 of them."""
SHARED_LIMIT = 16
"""Items of a tuple, or kilobytes of a text, that may stand in two places."""

Plain = object
"""None, bool, int, float, str, list, tuple or dict of these."""


class UnsafePickleError(ValueError):
    """The bytes are not a pickle of plain data."""


_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = frozenset(
    {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
     "BINUNICODE8", "INT", "FLOAT", "UNICODE"}
)  # fmt: skip
_IGNORED = frozenset({"PROTO", "FRAME"})


class _Machine:
    """The stack and memo of one pickle."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}

    def push(self, value: object) -> None:
        self.stack.append(value)

    def push_items(self, values: list[object]) -> None:
        """Push a dictionary of pairs."""
        self.push({})
        self.set_items(values)

    def pop_to_mark(self) -> list[object]:
        """What was pushed since the last mark."""
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                values = self.stack[index + 1 :]
                del self.stack[index:]
                return values
        raise UnsafePickleError("a mark is missing")

    def pop(self, count: int) -> list[object]:
        """The last values, oldest first."""
        values = self.stack[-count:]
        if len(values) < count or any(value is _MARK for value in values):
            raise UnsafePickleError("the stack is empty")
        del self.stack[-count:]
        return values

    def top(self, kind: type) -> object:
        """The value on top, of a kind."""
        if not self.stack or type(self.stack[-1]) is not kind:
            raise UnsafePickleError(f"a {kind.__name__} was expected")
        return self.stack[-1]

    def extend_list(self, values: list[object]) -> None:
        """Append to the list on top."""
        target = self.top(list)
        assert isinstance(target, list)  # noqa: S101 - top() checked it
        target.extend(values)

    def set_items(self, values: list[object]) -> None:
        """Put pairs into the dictionary on top."""
        target = self.top(dict)
        assert isinstance(target, dict)  # noqa: S101 - top() checked it
        if len(values) % 2:
            raise UnsafePickleError("a key without a value")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, (str, int, float, bool)):
                raise UnsafePickleError("a key that is not plain")
            target[key] = value


_BUILDERS: dict[str, Callable[[_Machine], None]] = {
    "MARK": lambda m: m.push(_MARK),
    "EMPTY_DICT": lambda m: m.push({}),
    "EMPTY_LIST": lambda m: m.push([]),
    "EMPTY_TUPLE": lambda m: m.push(()),
    "DICT": lambda m: m.push_items(m.pop_to_mark()),
    "LIST": lambda m: m.push(m.pop_to_mark()),
    "TUPLE": lambda m: m.push(tuple(m.pop_to_mark())),
    "TUPLE1": lambda m: m.push(tuple(m.pop(1))),
    "TUPLE2": lambda m: m.push(tuple(m.pop(2))),
    "TUPLE3": lambda m: m.push(tuple(m.pop(3))),
    "APPEND": lambda m: m.extend_list(m.pop(1)),
    "APPENDS": lambda m: m.extend_list(m.pop_to_mark()),
    "SETITEM": lambda m: m.set_items(m.pop(2)),
    "SETITEMS": lambda m: m.set_items(m.pop_to_mark()),
}


def load_plain_pickle(data: bytes) -> Plain:
    """The plain value a pickle holds.

    Raises:
        UnsafePickleError: It names a class, calls something, is too large or is not a pickle.
    """
    if len(data) > SIZE_LIMIT_BYTES:
        raise UnsafePickleError(f"larger than {SIZE_LIMIT_BYTES >> 20} MiB")
    try:
        return _run(data)
    except UnsafePickleError:
        raise
    except (ValueError, OverflowError, KeyError, IndexError) as exc:
        raise UnsafePickleError(f"not a pickle: {exc}") from exc


def _run(data: bytes) -> Plain:
    machine = _Machine()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if count > VALUE_LIMIT:
            raise UnsafePickleError(f"more than {VALUE_LIMIT} values")
        if opcode.name == "STOP":
            return _shallow(machine.pop(1)[0])
        _step(machine, opcode.name, argument)
    raise UnsafePickleError("it breaks off")


def _step(machine: _Machine, name: str, argument: object) -> None:
    if name in _IGNORED:
        return
    if name in _LITERALS:
        machine.push(_bounded(argument))
    elif name in _CONSTANTS:
        machine.push(_CONSTANTS[name])
    elif name in _BUILDERS:
        _BUILDERS[name](machine)
    elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
        machine.memo[_index(argument)] = machine.stack[-1]
    elif name == "MEMOIZE":
        machine.memo[len(machine.memo)] = machine.stack[-1]
    elif name in ("BINGET", "LONG_BINGET", "GET"):
        machine.push(_shareable(machine.memo[_index(argument)]))
    else:
        raise UnsafePickleError(f"opcode {name} is not allowed in plain data")


def _shareable(value: object) -> object:
    """Small things may stand in two places; what does grows when read, a container without bound.

    Only the first items of a tuple are looked at: a million references stay a million looks.
    """
    parts = value[: SHARED_LIMIT + 1] if isinstance(value, tuple) else (value,)
    if len(parts) <= SHARED_LIMIT and all(_is_small(part) for part in parts):
        return value
    raise UnsafePickleError("a container or a long text that stands in two places")


def _is_small(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= SHARED_LIMIT << 10
    return value is None or isinstance(value, (int, float))


def _bounded(value: object) -> object:
    """A literal that nothing later stumbles over."""
    if isinstance(value, str) and len(value) <= TEXT_LIMIT:
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, (bool, float)) or is_plain_number(value):
        return value
    raise UnsafePickleError("a text or a number larger than any in a dump")


def _shallow(value: Plain) -> Plain:
    if is_deep(value):
        raise UnsafePickleError(f"nested more than {DEPTH_LIMIT} deep")
    return value


def _index(argument: object) -> int:
    if not isinstance(argument, int):
        raise UnsafePickleError("a memo index that is not a number")
    return argument
