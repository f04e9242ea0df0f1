"""Which nodes of a job send packets of another size than the others."""

from collections import Counter
from collections.abc import Collection, Iterable

from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

MTU = "fabric.eth.mtu"

MAJORITY = 2
"""So many agree at least before one that differs is the odd one."""


def odd_packet_sizes(
    status: JobStatus, reports: Collection[NodeReport], weight: Weight
) -> Iterable[Evidence]:
    """Few nodes of the job whose interface of one name sends other packets than the others'."""
    by_nic: dict[str, dict[str, float]] = {}
    for report in reports:
        for m in report.named(MTU):
            if is_number(m.value) and report.node in status.job.nodes:
                by_nic.setdefault(m.subject, {})[report.node] = float(m.value)
    for nic, sizes in sorted(by_nic.items()):
        usual, nodes = Counter(sizes.values()).most_common(1)[0]
        for node, size in sorted(sizes.items()):
            if nodes >= MAJORITY and nodes * 2 > len(sizes) and size < usual:
                yield Evidence(
                    kind=MTU,
                    subject=Subject(node, nic),
                    weight=weight,
                    fault=FaultClass.NETWORK_ETH,
                    role=Role.ROOT,
                    source="fabric.eth",
                    text=f"{nic.removeprefix('nic:')} of {node} sends packets of {size:.0f} bytes,"
                    f" {nodes} other nodes send {usual:.0f}",
                    raw=f"{MTU} {nic} {size:.0f}",
                )
