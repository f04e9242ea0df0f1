"""Why a node is in its state, in one check and one sentence."""

from brctl.model.evidence import Weight
from brctl.model.sweep import Health, NodeHealth


def main_reason(node: NodeHealth) -> tuple[str, str]:
    """The evidence that decided, or what is missing; two empty texts for a healthy node."""
    if node.health is Health.OK:
        return "", ""
    if node.health is not Health.UNKNOWN:
        for weight in (Weight.CONVICTS, Weight.HINTS):
            for item in node.evidence:
                if item.weight is weight:
                    return item.source, item.text
    gap = next(iter(node.gaps), None)
    return (gap.what, gap.why) if gap else ("ssh", node.report.detail or node.report.outcome.value)
