"""Which hardware and which versions the nodes of a fleet have, as they said themselves."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from brctl.model.command import Outcome
from brctl.model.inventory import Node
from brctl.model.sweeps.fleet import Spread
from brctl.model.sweeps.report import NodeReport

VERSIONS = (
    "gpu.devices.driver_version", "host.versions.driver", "host.versions.nic_firmware",
    "host.versions.kernel", "host.versions.system", "host.versions.torch", "host.versions.nccl",
)  # fmt: skip
GPU_NAME = "gpu.device.name"
UNKNOWN = "not known"


def hardware(nodes: Sequence[Node], reports: Mapping[str, NodeReport]) -> Spread:
    """GPUs as the driver named them; what the inventory says of a node that did not name any."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        report = reports.get(node.name)
        named = Counter(_values(report, GPU_NAME)) if report else Counter[str]()
        text = ", ".join(f"{count} x {name}" for name, count in sorted(named.items()))
        found.setdefault(text or _by_inventory(node), []).append(node.name)
    return _common_first(found)


def versions(reports: Iterable[NodeReport]) -> dict[str, Spread]:
    """Versions by what was read; a node with several of one, two adapters say, has them all."""
    found: dict[str, dict[str, list[str]]] = {}
    for report in reports:
        for name in VERSIONS:
            text = ", ".join(sorted(set(_values(report, name))))
            if text:
                found.setdefault(name, {}).setdefault(text, []).append(report.node)
    return {name: _common_first(found[name]) for name in VERSIONS if name in found}


def _values(report: NodeReport, name: str) -> list[str]:
    if report.outcome is not Outcome.ANSWERED:
        return []
    return [str(m.value) for m in report.named(name)]


def _by_inventory(node: Node) -> str:
    model = node.labels.get("gpu_model", "")
    if node.gpus == 0:
        return "no GPU by the inventory"
    if not model and node.gpus is None:
        return UNKNOWN
    return f"{node.gpus or '?'} x {model or 'GPU'} by the inventory"


def _common_first(found: Mapping[str, list[str]]) -> Spread:
    return {
        value: tuple(nodes)
        for value, nodes in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    }
