"""`sweep --cron`: only what is new, recovered, or due for a reminder; nothing when all is quiet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from brctl.model.nodeset import fold, natural_key
from brctl.model.sweeps.changes import Changes, CheckProblem, Tracked
from brctl.model.units import describe_duration
from brctl.view.alike import fold_alike
from brctl.view.fleet.sweep import WORDS
from brctl.view.notices.page import Json
from brctl.view.text import columns, printable

_DETAIL = 120


def changes_text(changes: Changes, now_at: datetime) -> str:
    """One line per change, worst first; empty when there is nothing to tell."""
    return columns(list(_rows(changes, now_at)))


def changes_document(changes: Changes) -> dict[str, Json]:
    """The same for programs."""
    return {
        "new": [_problem(problem) for problem in changes.new],
        "worse": [_problem(problem) for problem in changes.worse],
        "recovered": [_problem(tracked.problem) for tracked in changes.recovered],
        "still": [_problem(tracked.problem) for tracked in changes.still],
        "flapping": [_problem(tracked.problem) for tracked in changes.flapping],
        "mass": [
            {
                "check": mass.check, "state": mass.health.value, "nodes": list(mass.nodes),
                "folded": fold(mass.nodes), "shared": mass.shared or None, "detail": mass.detail,
            }
            for mass in changes.mass
        ],
    }  # fmt: skip


def _problem(problem: CheckProblem) -> dict[str, Json]:
    return {
        "node": problem.node,
        "check": problem.check,
        "state": problem.health.value,
        "detail": problem.detail,
    }


def _rows(changes: Changes, now_at: datetime) -> Iterator[Sequence[str]]:
    for mass in changes.mass:
        shared = f" (all {mass.shared})" if mass.shared else ""
        text = f"{len(mass.nodes)} nodes at once, a cause they share{shared}: "
        text += printable(mass.detail, _DETAIL)
        yield "MASS", WORDS[mass.health], fold(mass.nodes), mass.check, text
    yield from _folded("NEW", changes.new)
    yield from _folded("WORSE", changes.worse)
    yield from _tracked("FLAPPING", changes.flapping, _came_back)
    yield from _tracked("RECOVERED", changes.recovered, lambda t: f"after {_lasted(t, now_at)}")
    yield from _tracked(
        "STILL", changes.still, lambda t: f"for {_lasted(t, now_at)}: {t.problem.detail}"
    )


def _came_back(tracked: Tracked) -> str:
    return f"came back {tracked.flaps} times; told once until it keeps quiet for a day"


def _lasted(tracked: Tracked, now_at: datetime) -> str:
    return describe_duration((now_at - tracked.since).total_seconds())


def _tracked(
    word: str, tracked: Iterable[Tracked], words: Callable[[Tracked], str]
) -> Iterator[Sequence[str]]:
    """What is known for longer, in the order of the nodes."""
    ordered = sorted(tracked, key=lambda t: (natural_key(t.problem.node), t.problem.check))
    said = (((t.problem.health, t.problem.check), t.problem.node, words(t)) for t in ordered)
    for each in fold_alike(said):
        health, check = each.key
        state = "" if word == "RECOVERED" else WORDS[health]
        yield word, state, fold(each.nodes), check, printable(each.text, _DETAIL)


def _folded(word: str, problems: Iterable[CheckProblem]) -> Iterator[Sequence[str]]:
    """Problems with the same words under one node set, in the order CRIT, UNKNOWN, WARN."""
    order = list(WORDS)
    said = (((order.index(p.health), p.check), p.node, p.detail) for p in problems)
    for each in sorted(fold_alike(said), key=lambda e: (e.key, e.text)):
        rank, check = each.key
        yield word, WORDS[order[rank]], fold(each.nodes), check, printable(each.text, _DETAIL)
