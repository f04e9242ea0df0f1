"""Folded node sets, `gpu[001-008,017]`: the one way to name nodes, in and out.

Input takes ranges, padding, steps, several brackets, `,` union, `!` minus, `&` and, `^` xor, read
from left to right, and `@group`. Output folds on one axis only and never uses steps, because
Slurm and scripts around it read nothing else. Own code: ClusterShell folds irregular names in
time that grows with their square (decision 0010).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from itertools import groupby, product

from brctl.model.errors import UsageError

EXPANSION_LIMIT = 200_000
"""More names than any fleet has: a typing error such as `n[1-99999999]` must not eat the memory."""

PATTERN_LIMIT = 1000
"""Patterns with `*` or `?` in one set: each is tried on every node of the inventory."""

GroupSource = Callable[[str], Iterable[str]]
"""Group name without `@` to node names; raises UsageError for a group nobody knows."""

# Python refuses to read numbers of thousands of digits, and no node counts beyond eighteen.
_LAST_NUMBER = re.compile(r"(.*?)(\d{1,18})(\D*)\Z", re.DOTALL)
# In a domain name the machine is counted before the first dot; an address such as 10.0.0.7 is none.
_FIRST_LABEL = re.compile(r"([^.]*?[A-Za-z][^.]*?)(\d{1,18})([^\d.]*\..*)\Z", re.DOTALL)
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18})(?:/(\d{1,18}))?)?\Z")
_NUMBER = re.compile(r"(\d{1,18})")
_WILDCARD = re.compile(r"[*?]")
_NO_NAME = re.compile(r"[^A-Za-z0-9._:%+@-]")
_NOT_WILD = re.compile(r"[^A-Za-z0-9._:%+@*?-]")
_OPERATORS = {
    ",": lambda left, right: left | right,
    "!": lambda left, right: left - right,
    "&": lambda left, right: left & right,
    "^": lambda left, right: left ^ right,
}


def _no_groups(name: str) -> Iterable[str]:
    raise UsageError(f"@{name}: no group is known here")


def fold(names: Iterable[str]) -> str:
    """Write node names as one folded set, sorted, on one axis.

    Examples:
        >>> fold(["gpu-002", "gpu-001", "gpu-017"])
        'gpu-[001-002,017]'
        >>> fold(["login"])
        'login'
        >>> fold(["n1.dc2.example.com", "n2.dc2.example.com"])
        'n[1-2].dc2.example.com'
    """
    stems: dict[tuple[str, str], set[str]] = {}
    plain: set[str] = set()
    for name in set(names):
        match = ("." in name and _FIRST_LABEL.match(name)) or _LAST_NUMBER.match(name)
        if match is None:
            plain.add(name)
        else:
            stems.setdefault((match[1], match[3]), set()).add(match[2])
    parts = [(name, "", name) for name in plain]
    parts += [
        (prefix, suffix, _fold_stem(prefix, numbers, suffix))
        for (prefix, suffix), numbers in stems.items()
    ]
    return ",".join(text for _, _, text in sorted(parts))


def _fold_stem(prefix: str, numbers: set[str], suffix: str) -> str:
    if len(numbers) == 1:
        return f"{prefix}{next(iter(numbers))}{suffix}"
    runs = ",".join(_runs(numbers))
    return f"{prefix}[{runs}]{suffix}"


def _runs(numbers: set[str]) -> Iterator[str]:
    """Consecutive numbers as `a-b`; numbers of one padded width stay together."""
    padded = {len(n) for n in numbers if n[0] == "0" and len(n) > 1}
    keyed = sorted((len(n) if len(n) in padded else 0, int(n)) for n in numbers)
    for (_, width), run in groupby(
        enumerate(keyed), lambda item: (item[1][1] - item[0], item[1][0])
    ):
        values = [value for _, (_, value) in run]
        first, last = f"{values[0]:0{width}d}", f"{values[-1]:0{width}d}"
        yield first if len(values) == 1 else f"{first}-{last}"


def expand(
    text: str, groups: GroupSource = _no_groups, known: Iterable[str] | None = None
) -> tuple[str, ...]:
    """Node names a folded set means, each once, in natural order.

    Args:
        text: As typed.
        groups: Members of an `@group`.
        known: Names that `*` and `?` may match; None where nothing is there to match.

    Raises:
        UsageError: The text is malformed, too large, or names an unknown group; the message
            quotes the faulty part.

    Examples:
        >>> expand("n[1-3]!n2")
        ('n1', 'n3')
    """
    result: set[str] = set()
    for operator, term in _terms(text):
        if term.startswith("@"):
            members = set(groups(term[1:]))
        elif known is not None and _WILDCARD.search(term):
            members = _matching(list(_expand_term(term, text, wild=True)), known, text)
        else:
            members = set(_expand_term(term, text))
        result = _OPERATORS[operator](result, members)
        if len(result) > EXPANSION_LIMIT:
            raise UsageError(f"{text!r}: more than {EXPANSION_LIMIT} nodes")
    return tuple(sorted(result, key=natural_key))


def expand_in_order(text: str) -> tuple[str, ...]:
    """Node names in the order they are written; each range counts up.

    Raises:
        UsageError: The text is malformed, or has other than names and ranges.

    Examples:
        >>> expand_in_order("n3,n[1-2]")
        ('n3', 'n1', 'n2')
    """
    terms = list(_terms(text))
    odd = next((operator for operator, _ in terms if operator != ","), "")
    if odd:
        raise UsageError(f"{text!r}: {odd!r} has no meaning where the order counts")
    return tuple(name for _, term in terms for name in expand(term))


def groups_in(text: str) -> tuple[str, ...]:
    """Names of the groups a folded set asks for, without `@`.

    Raises:
        UsageError: The text is malformed.

    Examples:
        >>> groups_in("n[1-3],@rack:r1!@cordoned")
        ('rack:r1', 'cordoned')
    """
    return tuple(term[1:] for _, term in _terms(text) if term.startswith("@"))


def needs_inventory(text: str) -> bool:
    """Whether only an inventory can say what a text means: it names a group or has wildcards."""
    return bool(text) and any(
        term.startswith("@") or _WILDCARD.search(term) for _, term in _terms(text)
    )


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts n2 before n10."""
    return tuple(
        (1, int(part), part) if part.isdecimal() else (0, 0, part) for part in _NUMBER.split(name)
    )


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of operator and term; operators inside brackets belong to the term."""
    if not text.strip():
        raise UsageError(f"{text!r}: names no node; is a variable of the shell empty?")
    operator, start, depth = ",", 0, 0
    for position, char in enumerate(text + ","):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        if depth == 0 and char in _OPERATORS:
            term = text[start:position].strip()
            if not term:
                raise UsageError(f"{text!r}: nothing stands before '{char}' at {position + 1}")
            yield operator, term
            operator, start = char, position + 1
    if depth:
        raise UsageError(f"{text!r}: brackets do not match")


def _matching(patterns: list[str], known: Iterable[str], whole: str) -> set[str]:
    """Known names that one of the patterns means.

    Raises:
        UsageError: None does: the shell may have read the pattern, or it is a typing error.
    """
    if len(patterns) > PATTERN_LIMIT:
        raise UsageError(f"{whole!r}: more than {PATTERN_LIMIT} patterns")
    expression = re.compile("|".join(map(translate, patterns)))
    found = {name for name in known if expression.match(name)}
    if not found:
        raise UsageError(f"{whole!r}: matched 0 of the nodes that are known here")
    return found


def _expand_term(term: str, whole: str, *, wild: bool = False) -> Iterator[str]:
    pieces = re.split(r"\[([^\[\]]*)\]", term)
    if any(set("[]") & set(piece) for piece in pieces[::2]):
        raise UsageError(f"{whole!r}: brackets do not match in {term!r}")
    bad = (_NOT_WILD if wild else _NO_NAME).search("".join(pieces[::2]))
    if bad:
        raise UsageError(f"{whole!r}: {bad[0]!r} cannot stand in a node name")
    choices: list[list[str]] = []
    size = 1
    for index, piece in enumerate(pieces):
        choices.append([piece] if index % 2 == 0 else list(_expand_ranges(piece, whole)))
        size *= len(choices[-1])
        if size > EXPANSION_LIMIT:
            raise UsageError(f"{whole!r}: more than {EXPANSION_LIMIT} nodes")
    return ("".join(parts) for parts in product(*choices))


def _expand_ranges(spans: str, whole: str) -> Iterator[str]:
    for span in spans.split(","):
        match = _RANGE.match(span.strip())
        if match is None:
            raise UsageError(f"{whole!r}: {span!r} is not a number or a range")
        first, last, step = match[1], match[2] or match[1], int(match[3] or 1)
        if int(last) < int(first):
            raise UsageError(f"{whole!r}: range {span!r} runs backwards")
        if step < 1 or (int(last) - int(first)) // step >= EXPANSION_LIMIT:
            raise UsageError(f"{whole!r}: range {span!r} is too large or has step 0")
        width = len(first) if first.startswith("0") else 0
        yield from (f"{n:0{width}d}" for n in range(int(first), int(last) + 1, step))
