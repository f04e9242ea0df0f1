"""Sweeps made of nodes in a given state."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import CheckResult, NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep

START = datetime(2026, 7, 1, 3, 0, tzinfo=UTC)
WEIGHTS = {Health.CRITICAL: Weight.CONVICTS, Health.WARNING: Weight.HINTS}


def node(name: str, health: Health = Health.OK, check: str = "gpu.ecc") -> NodeHealth:
    """A node whose one check is in a state; UNKNOWN means that it did not answer."""
    if health is Health.UNKNOWN:
        report = NodeReport(name, Outcome.CONNECT_TIMED_OUT, detail="no TCP connection")
        return NodeHealth(name, health, report, (), ())
    result = CheckResult(check, ProbeStatus.MEASURED)
    report = NodeReport(name, Outcome.ANSWERED, (result,))
    actual: tuple[Evidence, ...] = ()
    if health in WEIGHTS:
        actual = (
            Evidence(
                subject=Subject(name), kind=f"{check}.x", weight=WEIGHTS[health],
                fault=FaultClass.GPU_MEMORY_ECC, role=Role.ROOT, source=check,
                text=f"{name} is bad",
            ),
        )  # fmt: skip
    return NodeHealth(name, health, report, actual, ())


def gapped(name: str, check: str = "gpu.ecc") -> NodeHealth:
    """A node that answered but could not be asked one check."""
    result = CheckResult(check, ProbeStatus.TIMED_OUT)
    report = NodeReport(name, Outcome.ANSWERED, (result,))
    gap = Gap(Subject(name), check, "killed at its deadline")
    return NodeHealth(name, Health.UNKNOWN, report, (), (gap,))


def sweep(minute: float, nodes: Mapping[str, Health] | list[NodeHealth]) -> Sweep:
    """A sweep so many minutes after START."""
    listed = [node(k, v) for k, v in nodes.items()] if isinstance(nodes, Mapping) else nodes
    at = START + timedelta(minutes=minute)
    return Sweep(f"S-{minute:08.2f}", 1, ("gpu.ecc",), at, 2.5, tuple(listed))
