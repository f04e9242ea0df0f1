"""What an earlier sweep found against a node stands until its check answers again.

A sweep of a few checks would else make a node healthy by not looking at what ails it, and so would
one whose heavy check ran out of time.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime

from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.sweeps.report import NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import NodeHealth
from brctl.verdict.health import judge_node

_AGAINST = (Weight.HINTS, Weight.CONVICTS)


def with_standing(
    node: NodeHealth, before: NodeHealth, asked: Collection[str], since: datetime
) -> NodeHealth:
    """The node with what was found against it since a moment and was not looked at again.

    Args:
        node: What the newest sweep made of it.
        before: What was known of it until then.
        asked: The checks of the newest sweep.
        since: What was found earlier is forgotten.
    """
    measured = {m.name for m in node.report.measurements}
    answered = _answered(node.report, asked)
    standing = tuple(
        item
        for item in _against(before)
        if item.at is not None
        and item.at >= since
        and item.source not in answered
        and item.kind not in measured
    )
    if not standing:
        return node
    return judge_node(node.report, (*node.evidence, *standing), node.gaps)


def _answered(report: NodeReport, asked: Collection[str]) -> Collection[str]:
    if report.outcome is not Outcome.ANSWERED:
        return ()
    unread = {r.check for r in report.results if r.status is not ProbeStatus.MEASURED}
    return frozenset(asked) - unread


def _against(node: NodeHealth) -> Iterator[Evidence]:
    """Findings about the machine: its silence is over once it answers, its job may have left."""
    for item in node.evidence:
        passing = item.kind.startswith("node.") or item.source.startswith("job.")
        if item.weight in _AGAINST and item.role is not Role.VICTIM and not passing:
            yield item if item.at else replace(item, at=node.report.received_at)
