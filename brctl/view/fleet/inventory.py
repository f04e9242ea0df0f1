"""The inventory as people check it: who is there, and which source said what."""

from collections.abc import Mapping, Sequence

from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.nodeset import fold
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

Value = str | int
Origins = Mapping[str, Mapping[str, tuple[Value, str, Sequence[tuple[Value, str]]]]]
"""Node, key: the value that won, where it stands, and the values it overruled with theirs."""


def inventory_page(inventory: Inventory, names: Sequence[str], origins: Origins | None) -> Page:
    """The answer of `brctl inventory show`; with origins one line per value."""
    rows = tuple(_node_document(node) for node in inventory.pick(names))
    body: dict[str, Json] = {
        "sources": inventory.origin,
        "nodes": rows,
        "groups": {
            name: {"nodes": list(members), "folded": fold(members)}
            for name, members in inventory.groups.items()
        },
    }
    text = _origin_lines(origins, names) if origins is not None else _summary(inventory, names)
    return Page("Inventory", body, text, names=tuple(names), rows=rows)


def _node_document(node: Node) -> dict[str, Json]:
    return {
        "name": node.name, "address": node.address, "port": node.port, "user": node.user or None,
        "role": node.role.value, "python": node.python,
        "torch_python": node.torch_python or None, "via": node.via or None, "gpus": node.gpus,
        "labels": dict(node.labels), "origin": node.origin,
    }  # fmt: skip


def conflicts(origins: Origins) -> list[str]:
    """One sentence per value that sources disagree about."""
    return [
        f"{node}: {key} is {value} ({origin}), not {other} ({where}): the later source wins"
        for node, facts in origins.items()
        for key, (value, origin, overruled) in facts.items()
        for other, where in overruled
    ]


def _summary(inventory: Inventory, names: Sequence[str]) -> str:
    chosen = set(names)
    rows: list[Sequence[str]] = [("GROUP", "NODES", "")]
    for role in NodeRole:
        members = [n for n in inventory.names(role) if n in chosen]
        rows.append((f"@{role.value}", str(len(members)), fold(members)))
    for name, group in inventory.groups.items():
        members = [n for n in group if n in chosen]
        rows.append((f"@{printable(name)}", str(len(members)), fold(members)))
    return f"{len(names)} nodes from {inventory.origin}\n" + columns(rows)


def _origin_lines(origins: Origins, names: Sequence[str]) -> str:
    rows = [
        (node, key, printable(str(value), 60), printable(origin, 120),
         printable("; ".join(f"not {v} ({w})" for v, w in overruled), 120))
        for node in names
        for key, (value, origin, overruled) in origins.get(node, {}).items()
    ]  # fmt: skip
    return columns([("NODE", "KEY", "VALUE", "FROM", "OVERRULED"), *rows])
