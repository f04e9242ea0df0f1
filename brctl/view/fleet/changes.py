"""`sweep --cron`: only what is new, recovered, or due for a reminder; nothing when all is quiet."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from brctl.model.nodeset import fold, natural_key
from brctl.model.sweeps.changes import Changes, CheckProblem, Tracked
from brctl.model.units import describe_duration
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
    for tracked in _sorted(changes.flapping):
        problem = tracked.problem
        text = f"came back {tracked.flaps} times; told once until it keeps quiet for a day"
        yield "FLAPPING", WORDS[problem.health], problem.node, problem.check, text
    for tracked in _sorted(changes.recovered):
        problem = tracked.problem
        lasted = describe_duration((now_at - tracked.since).total_seconds())
        yield "RECOVERED", "", problem.node, problem.check, f"after {lasted}"
    for tracked in _sorted(changes.still):
        problem = tracked.problem
        lasted = describe_duration((now_at - tracked.since).total_seconds())
        detail = f"for {lasted}: {printable(problem.detail, _DETAIL)}"
        yield "STILL", WORDS[problem.health], problem.node, problem.check, detail


def _folded(word: str, problems: Iterable[CheckProblem]) -> Iterator[Sequence[str]]:
    """Problems with the same words under one node set, in the order CRIT, UNKNOWN, WARN."""
    groups: dict[tuple[int, str, str], list[str]] = {}
    order = list(WORDS)
    for problem in problems:
        detail = printable(problem.detail.replace(problem.node, "NODE"), _DETAIL)
        key = (order.index(problem.health), problem.check, detail)
        groups.setdefault(key, []).append(problem.node)
    for (rank, check, detail), nodes in sorted(groups.items()):
        text = detail.replace("NODE", nodes[0]) if len(nodes) == 1 else detail
        yield word, WORDS[order[rank]], fold(nodes), check, text


def _sorted(tracked: Iterable[Tracked]) -> list[Tracked]:
    return sorted(tracked, key=lambda each: (natural_key(each.problem.node), each.problem.check))
