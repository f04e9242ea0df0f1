"""Node reports, evidence and sweeps as tests need them: small, readable, real types."""

from collections.abc import Sequence
from datetime import UTC, datetime

from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth, Sweep
from brctl.verdict.health import judge_node

NOW = datetime(2026, 7, 5, 3, 2, 9, 412000, tzinfo=UTC)


def seen(
    node: str,
    *,
    weight: Weight = Weight.CONVICTS,
    fault: FaultClass = FaultClass.GPU_LOST,
    source: str = "gpu.xid",
    text: str = "Xid 79: GPU has fallen off the bus",
    device: str = "pci:0000:9b:00.0",
    role: Role = Role.ROOT,
) -> Evidence:
    """One judged observation."""
    subject = Subject(node, device)
    return Evidence("gpu.xid.79", subject, weight, fault, role, source, text, "raw line", NOW)


def health(
    node: str,
    evidence: Sequence[Evidence] = (),
    gaps: Sequence[Gap] = (),
    outcome: Outcome = Outcome.ANSWERED,
    detail: str = "",
) -> NodeHealth:
    """One node's judged answers."""
    report = NodeReport(node, outcome, detail=detail, seconds=0.25, received_at=NOW)
    return judge_node(report, evidence, gaps)


def clear(node: str) -> NodeHealth:
    """A node with a reading that was taken and is fine."""
    return health(node, [seen(node, weight=Weight.CLEARS, text="no Xid", role=Role.CONTEXT)])


def silent(node: str) -> NodeHealth:
    """A node that did not answer."""
    why = "connect-timed-out: no TCP connection within 10 s"
    gap = Gap(Subject(node), "node", why)
    return health(node, (), [gap], Outcome.CONNECT_TIMED_OUT, why)


def sweep_of(*nodes: NodeHealth) -> Sweep:
    """A finished sweep of these nodes."""
    return Sweep("S-1", 1, ("gpu.ecc", "gpu.xid"), NOW, 1.25, nodes)
