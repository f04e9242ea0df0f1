"""What `/` means: a node set where it reads as one, else words to look for; `!` in front inverts.

Node sets are the command line's, `brctl help selectors`.
"""

import re
from collections.abc import Callable

from brctl.engine.controller.selection import NOBODY_SWEPT, OWN_PREFIX, names_of_owner
from brctl.inventory.select import LiveFact, LiveState, facts_asked, names_in
from brctl.tui.rows.row import Row
from brctl.tui.session.facts import Facts, NodeFact

_SET = re.compile(r"[@\[,]")
_SCHEDULERS = (LiveFact.PLACEMENT, LiveFact.CORDONS)


def node_matcher(text: str, facts: Facts) -> Callable[[NodeFact], bool]:
    """Whether a node is meant by a filter; an empty filter means every node.

    Raises:
        UsageError: It reads as a node set and is none; the message says which part.
        UnavailableError: It asks for what is not known yet.
    """
    inverse, wanted = _inverted(text)
    if not wanted:
        return lambda fact: True
    if _SET.search(wanted) or wanted in facts.inventory.nodes:
        names = frozenset(names_in(facts.inventory, wanted, _moment(facts)))
        return lambda fact: (fact.name in names) != inverse
    pattern = _pattern(wanted)
    return lambda fact: bool(pattern.search(_haystack(fact))) != inverse


def asks_scheduler(text: str) -> bool:
    """Whether a filter can only be read once the scheduler has answered."""
    _, wanted = _inverted(text)
    return "@" in wanted and bool(facts_asked(wanted) & set(_SCHEDULERS))


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


def _moment(facts: Facts) -> LiveState:
    """What the terminal knows now, as the command line's selectors read it."""
    asker = {run.name: run.by for run in facts.runs}
    owners = {
        fact.name: names_of_owner(
            fact.cordon[0], asker.get(fact.cordon[0].removeprefix(OWN_PREFIX), "")
        )
        for fact in facts.nodes
        if fact.cordon is not None
    }
    missing: dict[LiveFact, str] = {}
    if facts.swept_at is None:
        missing[LiveFact.STATES] = NOBODY_SWEPT
    if not facts.scheduler_asked:
        missing |= dict.fromkeys(_SCHEDULERS, "the scheduler has not answered yet")
    return LiveState(
        jobs={job.name: job.nodes for job in facts.jobs},
        owners=owners,
        states={fact.name: fact.health for fact in facts.nodes if fact.health is not None},
        me=facts.user,
        missing=missing,
    )
