"""Decide what a lab consists of: names, addresses and isolation, before anything exists."""

import secrets

from brctl.lab import loopback, namespaces
from brctl.lab.record import LabNode, LabRecord
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.errors import UnavailableError

_MASTER_PORTS = range(11000, 20000)
NODES_A_LEAF = 4


def plan_lab(spec: LabSpec) -> LabRecord:
    """The record of a lab that does not exist yet."""
    tag = secrets.token_hex(8)
    isolation = _choose_isolation(spec.isolation)
    count = len(spec.names())
    if isolation is Isolation.NETNS:
        net = namespaces.subnet(tag)
        endpoints = [(f"{net}.{i}", namespaces.SSH_PORT) for i in range(1, count + 1)]
        bridge, controller = f"bl{tag[:6]}", f"{net}.254"
    else:
        endpoints, bridge, controller = loopback.addresses(tag, count), "", ""
    nodes = tuple(
        _plan_node(spec, index, name, endpoint)
        for index, (name, endpoint) in enumerate(zip(spec.names(), endpoints, strict=True))
    )
    return LabRecord(tag, isolation, spec, nodes, bridge=bridge, controller_address=controller)


def _plan_node(spec: LabSpec, index: int, name: str, endpoint: tuple[str, int]) -> LabNode:
    role = "active" if index < spec.nodes else "standby"
    leaf = index // NODES_A_LEAF + 1
    return LabNode(name, role, *endpoint, rack=f"r{leaf:02d}", leaf=f"leaf{leaf}")


def _choose_isolation(wanted: Isolation) -> Isolation:
    if wanted is Isolation.NONE:
        return wanted
    why_not = namespaces.missing()
    if why_not is None:
        return Isolation.NETNS
    if wanted is Isolation.NETNS:
        raise UnavailableError(
            f"--isolation netns is not possible here: {why_not}",
            hint="--isolation none needs no privileges",
        )
    return Isolation.NONE


def master_port(tag: str) -> int:
    """The training job's rendezvous port; rank 0 listens on all addresses, so labs must differ."""
    return _MASTER_PORTS[int(tag[:8], 16) % len(_MASTER_PORTS)]
