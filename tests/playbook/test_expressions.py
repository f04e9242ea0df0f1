"""Expressions compare and combine values; nothing in them is ever code."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.playbook.expressions import (
    KNOWN_AFTER_RUN,
    ExpressionError,
    Scope,
    evaluate,
    is_true,
    parse_expression,
)
from brctl.playbook.templates import expand, expand_value

SCOPE: Scope = {
    "inputs": {"suspects": ["n1", "n2"], "count": 2, "empty": []},
    "verdict": {"confidence": "high", "score": 0.97, "id": "V-1"},
    "steps": {"reserve": {"out": KNOWN_AFTER_RUN}},  # type: ignore[dict-item]  # the marker
    "failed": {"step": "burnin"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('verdict.confidence == "high" and len(inputs.suspects) <= 2', True),
        ("verdict.confidence == 'low' or inputs.count > 1", True),
        ("not inputs.count > 3 and not false", True),
        ('failed.step in ["burnin", "fabric"]', True),
        ('"n3" not in inputs.suspects', True),
        ("len(inputs.empty) == 0", True),
        ("verdict.score >= 0.9", True),
        ("(inputs.count == 1 or inputs.count == 2) and true", True),
        ("not not inputs.count == 2", True),
        ("inputs.count", 2),
        ("inputs.suspects", ["n1", "n2"]),
        ("-3 < 0", True),
    ],
)
def test_an_expression_has_one_value(text: str, value: object) -> None:
    """Every operator of the grammar does what its name says."""
    assert evaluate(text, SCOPE) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "inputs.count = 2",
        "__import__('os')",
        "inputs.count; 1",
        "a b",
        "len(",
        "[1, 2",
        "verdict.",
        "1 < 2 < 3",
        "lambda: 1",
        "not",
        "'open",
        "inputs.count ** 2",
        "x" * 3000,
        "(" * 50 + "1" + ")" * 50,
        "f(1)",
        "1.2.3",
        "len inputs",
    ],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    """Calls, assignments, arithmetic and torn text are errors when the playbook is read."""
    with pytest.raises(ExpressionError):
        parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "nobody.knows",
        "inputs.nothing",
        "inputs.count < 'a'",
        "not 3",
        "len(3)",
        "1 in 2",
        "1 and 2",
    ],
)
def test_values_that_do_not_fit_are_refused(text: str) -> None:
    """A condition never quietly turns into false."""
    with pytest.raises(ExpressionError):
        evaluate(text, SCOPE)


def test_what_a_later_step_gives_is_unknown_and_stays_so() -> None:
    """A plan never guesses, but what cannot matter does not make it doubt."""
    assert is_true("len(steps.reserve.out.nodes) > 0", SCOPE) is None
    assert is_true("steps.reserve.out.nodes == 1 or true", SCOPE) is True
    assert is_true("false and steps.reserve.out.nodes == 1", SCOPE) is False
    assert is_true("steps.reserve.out.nodes == 1 and true", SCOPE) is None


def test_a_condition_must_be_true_or_false() -> None:
    """A number is not a condition."""
    with pytest.raises(ExpressionError, match="neither true nor false"):
        is_true("inputs.count", SCOPE)


def test_a_text_that_is_one_reference_keeps_its_type() -> None:
    """`$(inputs.suspects)` is a list, inside a sentence it is a folded set."""
    assert expand_value("$(inputs.suspects)", SCOPE) == ["n1", "n2"]
    assert expand("on $(inputs.suspects) for $(verdict.id)", SCOPE) == "on n[1-2] for V-1"
    assert expand({"a": ["$(inputs.count)"]}, SCOPE) == {"a": [2]}
    assert expand("$(steps.reserve.out.nodes)", SCOPE) == "(known after run)"
    assert expand('$(failed.step in ["a)", "b"])', SCOPE) is False


def test_a_reference_that_is_never_closed_is_refused() -> None:
    """A missing bracket is found when the playbook is read."""
    with pytest.raises(ExpressionError, match="never closed"):
        expand("$(inputs.count", SCOPE)


@given(st.text(max_size=60))
def test_no_text_whatever_does_more_than_fail(text: str) -> None:
    """Hostile text is a value or an error, never another exception."""
    with suppress(ExpressionError):
        evaluate(text, SCOPE)
