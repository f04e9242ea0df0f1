"""The closed list of tests a check.yaml may apply to a reading. No expression is evaluated.

Every operator is total over the values its `accepts` admits and never raises on them; a reading or
operand of another type is a `Mismatch`, which becomes a gap, never a "does not match".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from brctl.model.foreign_json import is_plain_number
from brctl.model.sweeps.report import Value

Operand = Value | tuple[Value, ...]


class MismatchError(TypeError):
    """A reading cannot be tested this way: a text cannot be greater than a number."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number that can be measured; true and false are not numbers here."""
    return is_plain_number(value)


def _numeric(compare: Callable[[float, float], bool]) -> Callable[[Value, Operand], bool]:
    def test(value: Value, operand: Operand) -> bool:
        if not is_number(value) or not is_number(operand):
            raise MismatchError(f"{value!r} and {operand!r} are not both numbers")
        return compare(value, operand)

    return test


def _textual(compare: Callable[[str, str], bool]) -> Callable[[Value, Operand], bool]:
    def test(value: Value, operand: Operand) -> bool:
        if not isinstance(value, str) or not isinstance(operand, str):
            raise MismatchError(f"{value!r} and {operand!r} are not both text")
        return compare(value, operand)

    return test


def _equal(value: Value, operand: Operand) -> bool:
    both_numbers = is_number(value) and is_number(operand)
    if not both_numbers and type(value) is not type(operand):
        raise MismatchError(f"{value!r} and {operand!r} are of different types")
    return value == operand


def _member(value: Value, operand: Operand) -> bool:
    if not isinstance(operand, tuple):
        raise MismatchError(f"{operand!r} is not a list")
    return any(type(value) is type(item) and value == item for item in operand)


def _bits(value: Value, operand: Operand) -> bool:
    whole = isinstance(value, int) and isinstance(operand, int)
    if not whole or isinstance(value, bool) or isinstance(operand, bool):
        raise MismatchError(f"{value!r} and {operand!r} are not both bit masks")
    return bool(value & operand)  # type: ignore[operator]  # both are int, checked above


@dataclass(frozen=True, slots=True)
class Operator:
    """One test.

    Attributes:
        operand: What check.yaml must give: "number", "text", "value", "list", "mask" or "true".
        growth: The test applies to the increase since an earlier reading.
    """

    test: Callable[[Value, Operand], bool]
    operand: str
    growth: bool = False


OPERATORS: Mapping[str, Operator] = {
    "gt": Operator(_numeric(lambda a, b: a > b), "number"),
    "ge": Operator(_numeric(lambda a, b: a >= b), "number"),
    "lt": Operator(_numeric(lambda a, b: a < b), "number"),
    "le": Operator(_numeric(lambda a, b: a <= b), "number"),
    "eq": Operator(_equal, "value"),
    "ne": Operator(lambda a, b: not _equal(a, b), "value"),
    "in": Operator(_member, "list"),
    "not_in": Operator(lambda a, b: not _member(a, b), "list"),
    "contains": Operator(_textual(lambda a, b: b.casefold() in a.casefold()), "text"),
    "starts_with": Operator(_textual(lambda a, b: a.startswith(b)), "text"),
    "ends_with": Operator(_textual(lambda a, b: a.endswith(b)), "text"),
    "has_bit": Operator(_bits, "mask"),
    "present": Operator(lambda a, b: True, "true"),
    "absent": Operator(lambda a, b: False, "true"),
    "grew_by": Operator(_numeric(lambda a, b: a >= b), "number", growth=True),
}
"""Text is matched by plain containment: no pattern can make the controller backtrack."""
