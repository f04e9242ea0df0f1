"""What one source says about nodes, before sources are merged: every value knows its origin."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory, Node, NodeRole

Fact = str | int

NODE_FIELDS = ("address", "port", "user", "role", "python", "torch_python", "via", "gpus")
"""Facts that are fields of a Node; every other fact is a label."""


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,252}")
_NAMES = "letters, digits, `_`, `.`, `:` and `-`, the first a letter, a digit or `_`"
_ADDRESS = re.compile(r"[^\s/\x00-\x1f\x7f-]\S{0,254}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What one source says about one node; what it does not say is absent."""

    name: str
    facts: Mapping[str, Fact]
    origin: str


@dataclass(frozen=True, slots=True)
class InventorySource:
    """One source's nodes and groups, in its own order."""

    name: str
    nodes: tuple[NodeFacts, ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourcedFact:
    """A value and which source it came from; `overruled` lists other sources' values."""

    value: Fact
    origin: str
    overruled: tuple[tuple[Fact, str], ...] = ()


def merge(sources: Iterable[InventorySource]) -> dict[str, dict[str, SourcedFact]]:
    """Facts by node and key; a later source overrules an earlier one, and both are remembered."""
    merged: dict[str, dict[str, SourcedFact]] = {}
    for source in sources:
        for node in source.nodes:
            known = merged.setdefault(node.name, {})
            for key, value in node.facts.items():
                known[key] = _source(known.get(key), value, node.origin)
    return merged


def _source(before: SourcedFact | None, value: Fact, origin: str) -> SourcedFact:
    if before is None:
        return SourcedFact(value, origin)
    if before.value == value:
        return before
    return SourcedFact(value, origin, (*before.overruled, (before.value, before.origin)))


def build_inventory(sources: Iterable[InventorySource]) -> Inventory:
    """The inventory that these sources make together."""
    sources = tuple(sources)
    origins: dict[str, str] = {}
    for source in sources:
        for reported in source.nodes:
            origins.setdefault(reported.name, reported.origin)
    nodes = {
        name: _node(name, {key: reported.value for key, reported in facts.items()}, origins[name])
        for name, facts in merge(sources).items()
    }
    for name, node in nodes.items():
        _refuse_odd(name, node.address, origins[name])
    names = ", ".join(source.name for source in sources)
    return Inventory(nodes, _merge_groups(sources, nodes), names)


def _refuse_odd(name: str, address: str, origin: str) -> None:
    """A name becomes a word on a terminal, a folder below `cp --get` and a key of every file."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{origin}: {name[:80]!r} is no node name", hint=_NAMES)
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(f"{origin}: {address[:80]!r} is no address of {name}")


def _merge_groups(
    sources: Iterable[InventorySource], nodes: Mapping[str, Node]
) -> dict[str, tuple[str, ...]]:
    """Groups of all sources; a site's group file may name machines that are no nodes here."""
    groups: dict[str, dict[str, None]] = {}
    for source in sources:
        for name, members in source.groups.items():
            known = groups.setdefault(name, {})
            known.update((member, None) for member in members if member in nodes)
    return {name: tuple(members) for name, members in groups.items() if members}


def _node(name: str, facts: Mapping[str, Fact], origin: str) -> Node:
    gpus = facts.get("gpus")
    return Node(
        name=name,
        address=str(facts.get("address", name)),
        port=int(facts.get("port", 22)),
        user=str(facts.get("user", "")),
        role=NodeRole(str(facts.get("role", NodeRole.ACTIVE.value))),
        python=str(facts.get("python", "python3")),
        torch_python=str(facts.get("torch_python", "")),
        via=str(facts.get("via", "")),
        gpus=None if gpus is None else int(gpus),
        labels={key: str(value) for key, value in facts.items() if key not in NODE_FIELDS},
        origin=origin,
    )


def refuse_duplicates(nodes: Iterable[NodeFacts]) -> None:
    """One source names each node once.

    Raises:
        ConfigError: Names the node and both places.
    """
    origins: dict[str, str] = {}
    for node in nodes:
        line = node.origin.partition(":")[2]
        if node.name in origins:
            raise ConfigError(f"{line}: node {node.name!r} is already in {origins[node.name]}")
        origins[node.name] = line
