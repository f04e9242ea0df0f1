"""Operators are total: they answer, or they say that reading and operand do not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence.operators import OPERATORS, MismatchError, is_number

VALUES = st.one_of(st.integers(), st.floats(allow_nan=True), st.booleans(), st.text(max_size=20))
OPERANDS = st.one_of(VALUES, st.lists(VALUES, max_size=3).map(tuple))


@given(st.sampled_from(sorted(OPERATORS)), VALUES, OPERANDS)
def test_an_operator_answers_or_refuses(name: str, value: object, operand: object) -> None:
    """No pair of values makes an operator fail in any other way."""
    try:
        answer = OPERATORS[name].test(value, operand)  # type: ignore[arg-type]  # any type is tried
    except MismatchError:
        return
    assert isinstance(answer, bool)


@given(VALUES, VALUES)
def test_opposites_disagree(value: object, operand: object) -> None:
    """Gt is not le, lt is not ge, eq is not ne, in is not not_in."""
    for one, other in (("gt", "le"), ("lt", "ge"), ("eq", "ne")):
        try:
            first = OPERATORS[one].test(value, operand)  # type: ignore[arg-type]  # any type is tried
        except MismatchError:
            with pytest.raises(MismatchError):
                OPERATORS[other].test(value, operand)  # type: ignore[arg-type]  # as above
            continue
        assert first is not OPERATORS[other].test(value, operand)  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("name", "value", "operand", "answer"),
    [
        ("has_bit", 0x48, 64, True),
        ("has_bit", 0x8, 64, False),
        ("in", "D", ("D", "Z"), True),
        ("not_in", 1, (True,), True),
        ("contains", "GPU has Fallen off", "fallen", True),
        ("starts_with", "mlx5_0", "mlx5", True),
        ("ends_with", "mlx5_0", "_0", True),
        ("present", "", True, True),
        ("absent", "", True, False),
        ("eq", 1, 1.0, True),
    ],
)
def test_an_operator_means_what_it_says(
    name: str, value: object, operand: object, answer: bool
) -> None:
    """One row a meaning; true is not one."""
    assert OPERATORS[name].test(value, operand) is answer  # type: ignore[arg-type]  # any type is tried


def test_true_is_not_a_number() -> None:
    """A flag never passes a threshold."""
    assert not is_number(True)
    with pytest.raises(MismatchError):
        OPERATORS["eq"].test(True, 1)
