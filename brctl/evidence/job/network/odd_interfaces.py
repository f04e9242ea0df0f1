"""Which nodes of a job have an interface that is set, or came up, otherwise than the others'.

Interfaces of one name are compared. Smaller packets stop a job or slow it. A lower rate stops none:
it is what steps wait for that became longer in collectives, and where a job goes on as it used to
it says nothing. No check tells which Ethernet port carries the job: where a node has several, or
active RDMA ports that are read by themselves, a slower one may be that of its management.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

MAJORITY = 2
"""So many agree at least before one that differs is the odd one."""

_UP = (("fabric.ibport.state", "ACTIVE"), ("fabric.eth.carrier", True))
"""What an interface that is up reads: the rate of one that is down is nobody's."""


@dataclass(frozen=True, slots=True)
class _PortRule:
    """One reading of an interface, of which less than the others have is worse."""

    kind: str
    fault: FaultClass
    does: str
    others: str


PACKET_SIZES = (
    _PortRule(
        "fabric.eth.mtu", FaultClass.NETWORK_ETH,
        "sends packets of {value:.0f} bytes", "send {value:.0f}",
    ),
)  # fmt: skip
_RDMA_RATE, _ETHERNET_RATE = (
    _PortRule(kind, fault, "runs at {value:.0f} Gbit/s", "run at {value:.0f}")
    for kind, fault in (
        ("fabric.ibport.gbit_per_s", FaultClass.NETWORK_IB),
        ("fabric.eth.gbit_per_s", FaultClass.NETWORK_ETH),
    )
)


def odd_rates(status: JobStatus, reports: Collection[NodeReport]) -> Iterable[Evidence]:
    """Ports slower than those of their name; a hint where the job may use another one."""
    yield from odd_interfaces(status, reports, (_RDMA_RATE,), Weight.CONVICTS)
    only = {report.node for report in reports if _is_only_port(report)}
    for item in odd_interfaces(status, reports, (_ETHERNET_RATE,), Weight.CONVICTS):
        yield item if item.subject.node in only else replace(item, weight=Weight.HINTS)


def _is_only_port(report: NodeReport) -> bool:
    """Whether all that a node sends passes one Ethernet port, for it has no other that is up."""
    down = _down(report)
    ports = {m.subject for m in report.named("fabric.eth.carrier")} | {
        m.subject for m in report.named(_ETHERNET_RATE.kind)
    }
    rdma = {m.subject for m in report.named("fabric.ibport.state")}
    return len(ports - down) == 1 and rdma <= down


def odd_interfaces(
    status: JobStatus, reports: Collection[NodeReport], rules: Iterable[_PortRule], weight: Weight
) -> Iterable[Evidence]:
    """Few nodes of the job whose interface of one name has less than the others'."""
    for rule in rules:
        for nic, read in sorted(_by_interface(status, reports, rule.kind).items()):
            usual, nodes = Counter(read.values()).most_common(1)[0]
            if nodes < MAJORITY or nodes * 2 <= len(read):
                continue
            for node, value in sorted(read.items()):
                if value < usual:
                    yield _odd(
                        rule, node, nic, value, rule.others.format(value=usual), nodes, weight
                    )


def _odd(
    rule: _PortRule, node: str, nic: str, value: float, others: str, nodes: int, weight: Weight
) -> Evidence:
    name = nic.partition(":")[2] or nic
    return Evidence(
        kind=rule.kind,
        subject=Subject(node, nic),
        weight=weight,
        fault=rule.fault,
        role=Role.ROOT,
        source=rule.kind.rpartition(".")[0],
        text=f"{name} of {node} {rule.does.format(value=value)}, {nodes} other nodes {others}",
        raw=f"{rule.kind} {nic} {value:.0f}",
    )


def _by_interface(
    status: JobStatus, reports: Iterable[NodeReport], kind: str
) -> Mapping[str, Mapping[str, float]]:
    """What each node's interface of one name reads; none of those that are down."""
    by_nic: dict[str, dict[str, float]] = {}
    for report in reports:
        if report.node not in status.job.nodes:
            continue
        down = _down(report)
        for m in report.named(kind):
            if is_number(m.value) and m.value > 0 and m.subject not in down:
                by_nic.setdefault(m.subject, {})[report.node] = float(m.value)
    return by_nic


def _down(report: NodeReport) -> set[str]:
    return {m.subject for name, up in _UP for m in report.named(name) if m.value != up}
