"""Read brctl's own inventory file, `kind: Inventory`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from brctl.inventory.facts import Fact, InventorySource, NodeFacts, refuse_duplicates
from brctl.inventory.group_file import load_group_file
from brctl.inventory.select import BUILT_IN_GROUPS, DeclaredGroups
from brctl.library.file_tables import (
    DEFAULTS,
    INVENTORY,
    LABEL_FILE,
    LABELS,
    NODE,
    NODE_TEXTS,
    RACK,
    ROLES,
)
from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import refuse_untrusted
from brctl.model.errors import UsageError
from brctl.model.nodeset import expand

_NUMBERED = re.compile(r"[^%]*%0?\d{0,2}d[^%]*")
_GROUP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def load_own_yaml(path: Path) -> InventorySource:
    """The nodes and groups of one file.

    Raises:
        ConfigError: The file is invalid; names file, line and the nearest known key.
    """
    refuse_untrusted(path)
    top = open_kind(load_document(path), "Inventory", INVENTORY)
    defaults = top.section("defaults")
    defaults.allow(DEFAULTS)
    nodes = {node.name: node for node in _read_nodes(top.section("nodes"), defaults, path)}
    groups = top.section("groups")
    for name in groups.data:
        if isinstance(groups.data[name], dict):
            _add_labels(nodes, name, groups.section(name), path.parent)
    return InventorySource(f"file:{path.name}", tuple(nodes.values()), _read_groups(groups, nodes))


def _read_nodes(nodes: Section, defaults: Section, path: Path) -> tuple[NodeFacts, ...]:
    found = [node for key in nodes.data for node in _read_set(nodes, key, defaults, path)]
    refuse_duplicates(found)
    return tuple(found)


def _read_set(nodes: Section, key: str, defaults: Section, path: Path) -> Iterator[NodeFacts]:
    """The nodes of one line: a folded name with what is true of each of them."""
    names = _expand(nodes, key, key)
    written = nodes.data[key] is not None
    own = nodes.section(key) if written else None
    if own:
        own.allow(NODE)
    addresses = _read_addresses(own, len(names)) if own else ()
    shared = {**_read_facts(defaults), **(_read_facts(own) if own else {})}
    rack = _rack_format(own) if own and "rack" in own.data else _rack_format(defaults)
    origin = f"file:{path}:{nodes.line(key)}"
    for index, name in enumerate(names):
        facts = dict(shared)
        if rack:
            facts["rack"] = rack[1] % (index // rack[0])
        if addresses:
            facts["address"] = addresses[index]
        yield NodeFacts(name, facts, origin)


def _read_addresses(own: Section, count: int) -> tuple[str, ...]:
    if "address" not in own.data:
        return ()
    text = own.value("address", str)
    addresses = _expand(own, "address", text) if "[" in text and "]" in text else (text,)
    if len(addresses) != count:
        raise own.error(f"'address' means {len(addresses)} addresses for {count} nodes", "address")
    return addresses


def _read_facts(section: Section) -> dict[str, Fact]:
    facts: dict[str, Fact] = {
        key: section.value(key, str) for key in NODE_TEXTS if key in section.data
    }
    if "role" in section.data:
        facts["role"] = ROLES[section.choice("role", ROLES)].value
    for key, least, most in (("port", 1, 65535), ("gpus", 0, 1024)):
        if key in section.data:
            facts[key] = _number(section, key, least, most)
    for key in LABELS:
        if key in section.data and not (key == "rack" and isinstance(section.data[key], dict)):
            facts[key] = _label(section, key)
    labels = section.section("labels")
    for key in labels.data:
        if key in NODE:
            raise labels.error(f"{key!r} is not a label; write it one level up", key)
        facts[key] = _label(labels, key)
    return facts


def _label(section: Section, key: str) -> str:
    value = section.data[key]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise section.error(f"{key!r} must be text or a number", key)
    return str(value)


def _number(section: Section, key: str, least: int, most: int) -> int:
    value = section.value(key, int)
    if not least <= value <= most:
        raise section.error(f"{key!r} must be {least} to {most}, not {value}", key)
    return value


def _rack_format(section: Section) -> tuple[int, str] | None:
    """`rack: {every: 32, format: "r%02d"}`: 32 nodes a rack, numbered from 0 in node order."""
    if not isinstance(section.data.get("rack"), dict):
        return None
    rack = section.section("rack")
    rack.allow(RACK)
    text = rack.value("format", str, "r%02d")
    if not _NUMBERED.fullmatch(text):
        raise rack.error("'format' must hold one number, such as r%02d", "format")
    return _number(rack, "every", 1, 100_000), text


def _add_labels(nodes: dict[str, NodeFacts], label: str, section: Section, base: Path) -> None:
    """`leaf: {file: leaf.csv, key: node, value: leaf}` gives nodes a label and so `@leaf:L07`."""
    section.allow(LABEL_FILE)
    path = base / section.value("file", str)
    rows = load_group_file(
        path, section.value("key", str, "node"), section.value("value", str, label)
    )
    for line, name, value in rows:
        if name in nodes:
            node = nodes[name]
            nodes[name] = NodeFacts(name, {**node.facts, label: value}, node.origin)
        elif not name:
            raise section.error(f"{path}:{line}: no node name", "file")


def _read_groups(groups: Section, nodes: Mapping[str, NodeFacts]) -> dict[str, tuple[str, ...]]:
    texts: dict[str, str] = {}
    for name, value in groups.data.items():
        if name in BUILT_IN_GROUPS:
            raise groups.error(f"@{name} is built in and cannot be declared", name)
        if not _GROUP_NAME.fullmatch(name):
            raise groups.error(f"{name!r} cannot be a group's name", name)
        if not isinstance(value, dict):
            texts[name] = groups.value(name, str)
    declared = DeclaredGroups(texts)
    read: dict[str, tuple[str, ...]] = {}
    for name in texts:
        try:
            members = declared.members(name)
        except UsageError as exc:
            raise groups.error(f"group {name!r}: {exc}", name) from exc
        unknown = [member for member in members if member not in nodes]
        if unknown:
            raise groups.error(f"group {name!r}: {unknown[0]!r} is not a node here", name)
        read[name] = members
    return read


def _expand(section: Section, key: str, text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except UsageError as exc:
        raise section.error(str(exc), key) from exc
