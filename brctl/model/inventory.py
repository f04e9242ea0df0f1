"""Who is there: nodes with their addresses, roles and labels, and named groups of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from brctl.model.errors import UsageError


class NodeRole(StrEnum):
    """Active nodes take ranks; standbys (backup nodes) wait to take a node's place."""

    ACTIVE = "active"
    STANDBY = "standby"


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the inventory.

    Attributes:
        address: Host name or IP that SSH connects to.
        port: SSH port.
        user: SSH user; "" means the configured default.
        python: Interpreter that runs probes.
        torch_python: Interpreter with torch for the checks that need it; "" if none is known.
        via: Name of the node or host to jump through; "" for a direct connection.
        gpus: How many GPUs the node should have; None when the inventory does not say.
        labels: rack, leaf, gpu_model and whatever else the site writes.
        origin: Which source named it, `file:inventory.yaml:12`.
    """

    name: str
    address: str
    port: int = 22
    user: str = ""
    role: NodeRole = NodeRole.ACTIVE
    python: str = "python3"
    torch_python: str = ""
    via: str = ""
    gpus: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Nodes by name, in the order the source gave them, and groups of node names."""

    nodes: Mapping[str, Node]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origin: str = ""

    def pick(self, names: Iterable[str]) -> tuple[Node, ...]:
        """The nodes of these names; KeyError names one that is not there."""
        return tuple(self.nodes[name] for name in names)

    def require(self, names: Iterable[str]) -> None:
        """Check that all of these nodes are here.

        Raises:
            UsageError: One is not.
        """
        unknown = next((name for name in names if name not in self.nodes), None)
        if unknown is not None:
            raise UsageError(f"{unknown!r} is not in the inventory")

    def names(self, role: NodeRole | None = None) -> tuple[str, ...]:
        """Node names of one role, or of all."""
        return tuple(n.name for n in self.nodes.values() if role is None or n.role is role)

    def labels(self) -> dict[str, Mapping[str, str]]:
        """The labels of every node."""
        return {name: node.labels for name, node in self.nodes.items()}
