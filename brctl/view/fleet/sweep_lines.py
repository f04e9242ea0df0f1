"""`sweep --lines`: one line per node, for grep."""

from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.view.fleet.sweep import WORDS
from brctl.view.text import columns, printable

_AGAINST = (Weight.HINTS, Weight.CONVICTS)


def sweep_lines(sweep: Sweep) -> str:
    """State, node and what speaks against it, in the order the nodes were asked."""
    return columns([(WORDS[node.health], node.node, _against(node)) for node in sweep.nodes])


def _against(node: NodeHealth) -> str:
    if node.report.outcome is not Outcome.ANSWERED:
        # Each check would say the same once more.
        return printable(node.report.why_silent, 300)
    reasons = [f"{e.source}: {e.text}" for e in node.evidence if e.weight in _AGAINST]
    if node.health is Health.UNKNOWN:
        reasons += [f"{gap.what}: {gap.why}" for gap in node.gaps]
    return printable("; ".join(reasons), 300)
