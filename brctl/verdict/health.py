"""What one node's assessed answers say of the node as a whole."""

from collections.abc import Iterable

from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Weight
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import Health, NodeHealth


def judge_node(report: NodeReport, evidence: Iterable[Evidence], gaps: Iterable[Gap]) -> NodeHealth:
    """The state of a node: a conviction decides, then silence, then a hint.

    A node without any evidence is UNKNOWN: removing measurements never makes it healthier.
    """
    judged, missing = tuple(evidence), tuple(gaps)
    weights = {item.weight for item in judged if item.role is not Role.VICTIM}
    if Weight.CONVICTS in weights:
        health = Health.CRITICAL
    elif report.outcome is not Outcome.ANSWERED or missing or not judged:
        health = Health.UNKNOWN
    elif Weight.HINTS in weights:
        health = Health.WARNING
    else:
        health = Health.OK
    return NodeHealth(report.node, health, report, judged, missing)
