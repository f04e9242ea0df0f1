"""The expression language of playbooks: names, comparisons, `and or not in`, `len()`. No code.

    expression = or ;  or = and {"or" and} ;  and = not {"and" not} ;  not = ["not"] comparison
    comparison = operand [("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in") operand]
    operand    = number | text | list | name | "len" "(" or ")" | "(" or ")"
    name       = word {"." word | "[" or "]"}

A value that a later step will give is KNOWN_AFTER_RUN; whatever depends on it is too, so a plan
never guesses.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from brctl.model.runs.playbook import Json

LENGTH_LIMIT = 2000
"""Longer than any condition a person reads at night."""

DEPTH_LIMIT = 30
"""Brackets within brackets; deeper is an attack on the parser's stack."""


class ExpressionError(ValueError):
    """The text is not an expression, or a value does not fit its operator."""


class _KnownAfterRun:
    """The value of something that has not happened yet."""

    def __repr__(self) -> str:
        return "(known after run)"


KNOWN_AFTER_RUN = _KnownAfterRun()
Value: TypeAlias = "Json | _KnownAfterRun"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value written down."""

    value: Json


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b]`."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Name:
    """`steps.reserve.out.nodes`: a root word, then keys that are words or expressions."""

    root: str
    keys: tuple["Node", ...]

    def __str__(self) -> str:
        return self.root + "".join(
            f".{key.value}" if isinstance(key, Literal) else "[...]" for key in self.keys
        )


@dataclass(frozen=True, slots=True)
class Unary:
    """`not x` or `len(x)`."""

    operator: str
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    """A comparison, `and` or `or`."""

    operator: str
    left: "Node"
    right: "Node"


Node = Literal | ListOf | Name | Unary | Binary

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?\d+(?:\.\d+)?)(?![\w.])|(?P<text>"[^"]*"|'[^']*')
    |(?P<operator>==|!=|<=|>=|<|>)|(?P<mark>[()\[\],.])|(?P<word>[A-Za-z_][A-Za-z0-9_-]*))""",
    re.VERBOSE,
)
_KEYWORDS = {"and", "or", "not", "in", "len", "true", "false"}
_CONSTANTS: Mapping[str, Json] = {"true": True, "false": False}


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"{text!r}: cannot read {text[position:].strip()[:20]!r}")
        kind = match.lastgroup or ""
        yield kind, match[kind]
        position = match.end()
    yield "end", ""


class _Parser:
    """Recursive descent over the grammar at the top of this file."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_LIMIT:
            raise ExpressionError(f"an expression longer than {LENGTH_LIMIT} characters")
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._or()
        if self._peek()[0] != "end":
            odd = self._peek()[1]
            why = "; the only function is len()" if odd == "(" else ""
            raise self._error(f"unexpected {odd!r}{why}")
        return node

    def _error(self, problem: str) -> ExpressionError:
        return ExpressionError(f"{self._text!r}: {problem}")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next]

    def _accept(self, *values: str) -> str | None:
        kind, value = self._peek()
        if kind in ("operator", "mark", "word") and value in values:
            self._next += 1
            return value
        return None

    def _expect(self, value: str) -> None:
        if self._accept(value) is None:
            raise self._error(f"{value!r} is missing before {self._peek()[1] or 'the end'!r}")

    def _or(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise self._error(f"more than {DEPTH_LIMIT} brackets within brackets")
        node = self._and()
        while self._accept("or"):
            node = Binary("or", node, self._and())
        self._depth -= 1
        return node

    def _and(self) -> Node:
        node = self._not()
        while self._accept("and"):
            node = Binary("and", node, self._not())
        return node

    def _not(self) -> Node:
        negations = 0
        while self._accept("not"):
            negations += 1
        node = self._comparison()
        return Unary("not", node) if negations % 2 else node

    def _comparison(self) -> Node:
        left = self._operand()
        operator = self._accept("==", "!=", "<", "<=", ">", ">=", "in", "not")
        if operator is None:
            return left
        if operator == "not":
            self._expect("in")
            operator = "not in"
        return Binary(operator, left, self._operand())

    def _operand(self) -> Node:
        kind, value = self._peek()
        self._next += kind != "end"
        match kind, value:
            case "number", _:
                return Literal(float(value) if "." in value else int(value))
            case "text", _:
                return Literal(value[1:-1])
            case "mark", "(":
                node = self._or()
                self._expect(")")
                return node
            case "mark", "[":
                return ListOf(tuple(self._items()))
            case "word", "len":
                return self._length()
            case "word", ("true" | "false"):
                return Literal(_CONSTANTS[value])
            case "word", _ if value not in _KEYWORDS:
                return Name(value, tuple(self._keys()))
        raise self._error(f"a value is missing before {value or 'the end'!r}")

    def _length(self) -> Node:
        self._expect("(")
        node = Unary("len", self._or())
        self._expect(")")
        return node

    def _items(self) -> Iterator[Node]:
        while not self._accept("]"):
            yield self._or()
            if not self._accept(","):
                self._expect("]")
                return

    def _keys(self) -> Iterator[Node]:
        while mark := self._accept(".", "["):
            if mark == "[":
                yield self._or()
                self._expect("]")
                continue
            kind, word = self._peek()
            if kind != "word":
                raise self._error(f"a name is missing after {'.'!r}")
            self._next += 1
            yield Literal(word)


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Node:
    """The tree an expression means.

    Raises:
        ExpressionError: The text is not an expression; quotes the faulty part.
    """
    return _Parser(text).parse()


def names_in(node: Node) -> Iterator[Name]:
    """Every name an expression reads."""
    match node:
        case Name(keys=keys):
            yield node
            for key in keys:
                yield from names_in(key)
        case ListOf(items=items):
            for item in items:
                yield from names_in(item)
        case Unary(operand=operand):
            yield from names_in(operand)
        case Binary(left=left, right=right):
            yield from names_in(left)
            yield from names_in(right)


Scope = Mapping[str, Value]


def evaluate(text: str, scope: Scope) -> Value:
    """What an expression gives in a scope.

    Raises:
        ExpressionError: A name has no value, or an operator does not fit its operands.
    """
    return _value(parse_expression(text), scope)


def is_true(text: str, scope: Scope) -> bool | None:
    """Whether a condition holds; None when that is only known after the run."""
    value = evaluate(text, scope)
    if isinstance(value, _KnownAfterRun):
        return None
    if not isinstance(value, bool):
        raise ExpressionError(f"{text!r} gives {value!r}, which is neither true nor false")
    return value


def _value(node: Node, scope: Scope) -> Value:
    match node:
        case Literal(value=value):
            return value
        case ListOf(items=items):
            values = [_value(item, scope) for item in items]
            if any(isinstance(value, _KnownAfterRun) for value in values):
                return KNOWN_AFTER_RUN
            return [value for value in values if not isinstance(value, _KnownAfterRun)]
        case Name():
            return _look_up(node, scope)
        case Unary(operator=operator, operand=operand):
            return _unary(operator, _value(operand, scope))
        case Binary(operator=operator, left=left, right=right):
            return _binary(operator, left, right, scope)


def _look_up(name: Name, scope: Scope) -> Value:
    if name.root not in scope:
        raise ExpressionError(f"{name}: {name.root!r} has no value here")
    value = scope[name.root]
    for key_node in name.keys:
        if isinstance(value, _KnownAfterRun):
            return value
        key = _value(key_node, scope)
        if not isinstance(value, Mapping) or not isinstance(key, str) or key not in value:
            raise ExpressionError(f"{name}: {key!r} has no value here")
        value = value[key]
    return value


def _unary(operator: str, value: Value) -> Value:
    if isinstance(value, _KnownAfterRun):
        return value
    if operator == "not":
        if not isinstance(value, bool):
            raise ExpressionError(f"`not` needs true or false, not {value!r}")
        return not value
    if not isinstance(value, str | Sequence | Mapping):
        raise ExpressionError(f"len() needs a list or text, not {value!r}")
    return len(value)


def _binary(operator: str, left: Node, right: Node, scope: Scope) -> Value:
    first = _value(left, scope)
    if operator in ("and", "or"):
        # `false and unknown` is false: the unknown half cannot change it.
        if first is (operator == "or"):
            return first
        second = _value(right, scope)
        if second is (operator == "or"):
            return second
        return _both_boolean(operator, first, second)
    second = _value(right, scope)
    if isinstance(first, _KnownAfterRun) or isinstance(second, _KnownAfterRun):
        return KNOWN_AFTER_RUN
    return _COMPARISONS[operator](first, second)


def _both_boolean(operator: str, first: Value, second: Value) -> Value:
    for value in (first, second):
        if not isinstance(value, bool | _KnownAfterRun):
            raise ExpressionError(f"`{operator}` needs true or false, not {value!r}")
    if isinstance(first, _KnownAfterRun) or isinstance(second, _KnownAfterRun):
        return KNOWN_AFTER_RUN
    return second


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[Json, Json], bool]:
    def decide(left: Json, right: Json) -> bool:
        for value in (left, right):
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise ExpressionError(f"{value!r} is not a number and has no order")
        return compare(left, right)  # type: ignore[arg-type]  # both were just checked

    return decide


def _contains(left: Json, right: Json) -> bool:
    if isinstance(right, str):
        return isinstance(left, str) and left in right
    if not isinstance(right, Sequence | Mapping):
        raise ExpressionError(f"`in` needs a list or text on its right, not {right!r}")
    return left in right


_COMPARISONS: Mapping[str, Callable[[Json, Json], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "in": _contains,
    "not in": lambda left, right: not _contains(left, right),
}
