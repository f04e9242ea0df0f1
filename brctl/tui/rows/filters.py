r"""What `/` means: a node set or `@group` where it reads as one, else words to look for.

`!` in front inverts. Groups of the moment: `@state:crit`, `@cordoned`, `@by:OWNER`, `@job:NAME`.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from brctl.inventory.select import group_members
from brctl.model.errors import UsageError
from brctl.model.nodeset import expand
from brctl.tui.rows.row import Row
from brctl.tui.session.facts import Facts, NodeFact, State

_SET = re.compile(r"[@\[,]")


def node_matcher(text: str, facts: Facts) -> Callable[[NodeFact], bool]:
    """Whether a node is meant by a filter; an empty filter means every node.

    Raises:
        UsageError: It reads as a node set and is none; the message says which part.
    """
    inverse, wanted = _inverted(text)
    if not wanted:
        return lambda fact: True
    if _SET.search(wanted) or wanted in facts.inventory.nodes:
        names = frozenset(expand(wanted, lambda name: _group(name, facts)))
        return lambda fact: (fact.name in names) != inverse
    pattern = _pattern(wanted)
    return lambda fact: bool(pattern.search(_haystack(fact))) != inverse


def row_matcher(text: str) -> Callable[[Row], bool]:
    """Whether a line of a list is meant by a filter: words, or a regular expression."""
    inverse, wanted = _inverted(text)
    if not wanted:
        return lambda line: True
    pattern = _pattern(wanted)
    return lambda line: bool(pattern.search(line.text)) != inverse


def _inverted(text: str) -> tuple[bool, str]:
    return (True, text[1:].strip()) if text.startswith("!") else (False, text.strip())


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error:
        return re.compile(re.escape(text), re.IGNORECASE)


def _haystack(fact: NodeFact) -> str:
    labels = " ".join(fact.node.labels.values())
    return f"{fact.name} {fact.state.value} {fact.check} {fact.detail} {fact.job} {labels}"


def _group(name: str, facts: Facts) -> Iterable[str]:
    moment = _momentary(facts)
    kind, colon, value = name.partition(":")
    if kind == "state" and colon:
        known = [state.value for state in State]
        if value not in known:
            raise UsageError(f"@{name}: no such state; known: {', '.join(known)}")
    if kind in ("state", "by", "job") and colon:
        return moment.get(name, ())
    return moment[name] if name in moment else group_members(facts.inventory, moment, name)


def _momentary(facts: Facts) -> Mapping[str, list[str]]:
    """Groups that only this moment knows."""
    found: dict[str, list[str]] = {"cordoned": []}
    for fact in facts.nodes:
        found.setdefault(f"state:{fact.state.value}", []).append(fact.name)
        if fact.health is not None:
            names = found.setdefault(f"state:{fact.health.value}", [])
            if not names or names[-1] != fact.name:
                names.append(fact.name)
        if fact.cordon is not None:
            found["cordoned"].append(fact.name)
            found.setdefault(f"by:{fact.cordon[0].partition(':')[0]}", []).append(fact.name)
        if fact.job:
            found.setdefault(f"job:{fact.job}", []).append(fact.name)
    return found
