"""What is wrong with the nodes of one sweep, as rows that can be compared with another sweep's."""

from collections.abc import Iterable, Iterator

from brctl.model.command import Outcome
from brctl.model.evidence import Role, Weight
from brctl.model.sweeps.changes import CheckProblem, Key
from brctl.model.sweeps.report import ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth

TRANSPORT = "transport"
"""Stands for the check when the node itself did not answer."""

_HEALTH_OF = {Weight.CONVICTS: Health.CRITICAL, Weight.HINTS: Health.WARNING}
_WORST_FIRST = (Health.CRITICAL, Health.UNKNOWN, Health.WARNING)


def problems_of(nodes: Iterable[NodeHealth]) -> tuple[CheckProblem, ...]:
    """Every node's problems, one per check."""
    found: dict[Key, CheckProblem] = {}
    for node in nodes:
        for problem in _of_node(node):
            known = found.get(problem.key)
            if known is None or _rank(problem) < _rank(known):
                found[problem.key] = problem
    return tuple(found.values())


def cleared_by(nodes: Iterable[NodeHealth]) -> frozenset[Key]:
    """What this sweep really looked at and found in order: silence clears nothing."""
    bad = {problem.key for problem in problems_of(nodes)}
    return frozenset(key for node in nodes for key in _looked_at(node) if key not in bad)


def reason_of(node: NodeHealth) -> tuple[str, str]:
    """The check and the sentence that put a node into its state; empty when it is in order."""
    found = [problem for problem in _of_node(node) if problem.health is node.health]
    if found:
        return found[0].check, found[0].detail
    return ("", "") if node.health is Health.OK else ("-", node.report.detail or "nothing judged")


def _of_node(node: NodeHealth) -> Iterator[CheckProblem]:
    if node.report.outcome is not Outcome.ANSWERED:
        detail = f"{node.report.outcome}: {node.report.why_silent}"
        yield CheckProblem(node.node, TRANSPORT, Health.UNKNOWN, detail)
    for item in node.evidence:
        health = _HEALTH_OF.get(item.weight)
        # `node.refused` and its like repeat the transport's problem, and no check clears them.
        is_silent = item.kind.startswith("node.")
        if health and item.role is not Role.VICTIM and not is_silent:
            yield CheckProblem(node.node, item.source, health, item.text)
    if node.report.outcome is Outcome.ANSWERED:
        for gap in node.gaps:
            yield CheckProblem(node.node, gap.what, Health.UNKNOWN, gap.why)


def _looked_at(node: NodeHealth) -> Iterator[Key]:
    if node.report.outcome is Outcome.ANSWERED:
        yield node.node, TRANSPORT
    for result in node.report.results:
        if result.status is ProbeStatus.MEASURED:
            yield node.node, result.check


def _rank(problem: CheckProblem) -> int:
    return _WORST_FIRST.index(problem.health)
