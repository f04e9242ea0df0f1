"""GPU nodes of a Kubernetes cluster, as `kubectl` sees them."""

from collections.abc import Mapping

from brctl.inventory.commands import ask_tool
from brctl.inventory.facts import Fact, InventorySource, NodeFacts
from brctl.model.errors import UnavailableError
from brctl.model.foreign_json import read_foreign_json
from brctl.model.inventory import NodeRole

GPU_NODES = "nvidia.com/gpu.present=true"
"""The label NVIDIA's GPU feature discovery puts on nodes with a GPU."""

STANDBY_LABEL = "brctl.dev/role"
"""`standby` keeps a node out of jobs until a swap needs it."""

# What brctl calls a label, and where clusters write it, best first: Kubernetes' own, NVIDIA's
# topograph, EKS, GKE, OKE, ACK; then what sites write by hand.
_LABELS = {
    "rack": (
        "topology.kubernetes.io/rack", "cloud.provider.com/topology-rack",
        "cloud.google.com/gce-topology-subblock", "rack",
    ),
    "zone": ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    "leaf": (
        "network.topology.kubernetes.io/leaf", "network.topology.nvidia.com/leaf",
        "fabric.topograph.run/tier-0", "topology.k8s.aws/network-node-layer-3",
        "oci.oraclecloud.com/rdma.local_block_id", "alibabacloud.com/asw-id", "leaf",
    ),
    "spine": (
        "network.topology.kubernetes.io/spine", "network.topology.nvidia.com/spine",
        "fabric.topograph.run/tier-1", "topology.k8s.aws/network-node-layer-2",
        "oci.oraclecloud.com/rdma.network_block_id", "spine",
    ),
    "pod": (
        "cloud.provider.com/topology-block", "cloud.google.com/gce-topology-block",
        "topology.k8s.aws/network-node-layer-1", "oci.oraclecloud.com/rdma.hpc_island_id",
    ),
    "nvlink_domain": ("network.topology.nvidia.com/accelerator", "nvidia.com/gpu.clique"),
    "gpu_model": ("nvidia.com/gpu.product",),
}  # fmt: skip


def load_kubernetes(context: str, selector: str) -> InventorySource:
    """The nodes a label selector means in a kubectl context; "" is the current one.

    Raises:
        UnavailableError: kubectl does not answer.
    """
    where = ["--context", context] if context else []
    argv = ["kubectl", *where, "get", "nodes", "-o", "json", "-l", selector or GPU_NODES]
    return parse_nodes(ask_tool([*argv, "--request-timeout=15s"]), f"k8s:{context or 'current'}")


def parse_nodes(raw: bytes, name: str) -> InventorySource:
    """The nodes of `kubectl get nodes -o json`.

    Raises:
        UnavailableError: It is not a list of nodes.
    """
    try:
        items = read_foreign_json(raw)["items"]  # type: ignore[index]  # TypeError is caught
        nodes = tuple(_node(item, name) for item in items)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise UnavailableError(f"inventory: kubectl printed no list of nodes: {exc}") from exc
    return InventorySource(name, nodes)


def _node(item: Mapping[str, Mapping[str, object]], origin: str) -> NodeFacts:
    name = str(item["metadata"]["name"])
    found = item["metadata"].get("labels")
    labels = found if isinstance(found, dict) else {}
    facts: dict[str, Fact] = {"address": _address(item.get("status", {}), name)}
    for key, label_keys in _LABELS.items():
        value = next((labels[label_key] for label_key in label_keys if labels.get(label_key)), None)
        if value:
            facts[key] = str(value)
    if labels.get(STANDBY_LABEL) == NodeRole.STANDBY:
        facts["role"] = NodeRole.STANDBY.value
    count = str(labels.get("nvidia.com/gpu.count", ""))
    if count.isdecimal() and len(count) < 7:
        facts["gpus"] = int(count)
    return NodeFacts(name, facts, origin)


def _address(status: Mapping[str, object], name: str) -> str:
    addresses = status.get("addresses")
    for entry in addresses if isinstance(addresses, list) else []:
        if isinstance(entry, dict) and entry.get("type") == "InternalIP":
            return str(entry.get("address", name))
    return name
