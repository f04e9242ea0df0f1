"""Read an Ansible inventory: INI, YAML, or the JSON of `ansible-inventory --list`."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from brctl.inventory.facts import Fact, InventorySource, NodeFacts
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import read_whole
from brctl.model.errors import ConfigError, UsageError
from brctl.model.nodeset import expand

SIZE_LIMIT_BYTES = 16 << 20
_VARIABLES = {
    "ansible_host": "address", "ansible_ssh_host": "address", "ansible_port": "port",
    "ansible_ssh_port": "port", "ansible_user": "user", "ansible_ssh_user": "user",
    "ansible_python_interpreter": "python", "rack": "rack", "leaf": "leaf", "zone": "zone",
    "gpus": "gpus",
}  # fmt: skip
_NUMBERS = ("port", "gpus")
_HEADER = re.compile(r"\[([^\]:]+)(?::(vars|children))?\]\s*(?:[#;].*)?$")
_ANSIBLE_RANGE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")
_DEPTH_LIMIT = 32


@dataclass(slots=True)
class Group:
    """One group as the file writes it; variables of hosts by host."""

    hosts: dict[str, Mapping[str, object]] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)
    variables: dict[str, object] = field(default_factory=dict)


def load_ansible(path: Path) -> InventorySource:
    """The hosts and groups of one inventory file.

    Raises:
        ConfigError: The file cannot be read as any of the three forms; names file and line.
    """
    try:
        text = read_whole(path, SIZE_LIMIT_BYTES).decode()
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc}") from exc
    groups = _read(path, text)
    return _source(groups, path)


def _read(path: Path, text: str) -> dict[str, Group]:
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        return _read_json(path, text)
    if path.suffix in (".yml", ".yaml"):
        groups: dict[str, Group] = {}
        _read_yaml_groups(load_document(path).data, groups, path, 0)
        return groups
    return _read_ini(path, text)


def _read_json(path: Path, text: str) -> dict[str, Group]:
    try:
        data = json.loads(text)
        variables = data.get("_meta", {}).get("hostvars", {})
        groups: dict[str, Group] = {}
        for name, group in data.items():
            if name == "_meta":
                continue
            hosts = {host: variables.get(host, {}) for host in group.get("hosts", [])}
            children, own = list(group.get("children", [])), dict(group.get("vars", {}))
            groups[name] = Group(hosts, children, own)
    except (ValueError, AttributeError, TypeError, RecursionError) as exc:
        raise ConfigError.at(path, 1, f"not the JSON of ansible-inventory --list: {exc}") from exc
    return groups


def _read_yaml_groups(data: object, groups: dict[str, Group], path: Path, depth: int) -> None:
    if not isinstance(data, dict) or depth > _DEPTH_LIMIT:
        raise ConfigError.at(path, 1, "a group must be a mapping, at most 32 deep")
    for name, body in data.items():
        body = body or {}
        if not isinstance(body, dict):
            raise ConfigError.at(path, 1, f"group {name!r} must be a mapping")
        group = groups.setdefault(name, Group())
        for pattern, variables in (body.get("hosts") or {}).items():
            for host in _hosts(pattern, path, 1):
                group.hosts[host] = variables or {}
        group.variables.update(body.get("vars") or {})
        children = body.get("children") or {}
        group.children += list(children)
        _read_yaml_groups(children, groups, path, depth + 1)


def _read_ini(path: Path, text: str) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    name, kind = "ungrouped", "hosts"
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        header = _HEADER.match(line)
        if header:
            name, kind = header[1], header[2] or "hosts"
        group = groups.setdefault(name, Group())
        if not header:
            _read_ini_line(group, kind, line, path, number)
    return groups


def _read_ini_line(group: Group, kind: str, line: str, path: Path, number: int) -> None:
    try:
        fields = shlex.split(line, comments=True)
    except ValueError as exc:
        raise ConfigError.at(path, number, f"{exc}") from exc
    if kind == "children":
        group.children.append(fields[0])
    elif kind == "vars":
        key, _, value = line.partition("=")
        group.variables[key.strip()] = value.strip()
    else:
        variables = dict(field_.split("=", 1) for field_ in fields[1:] if "=" in field_)
        for host in _hosts(fields[0], path, number):
            group.hosts[host] = {**group.hosts.get(host, {}), **variables}


def _hosts(pattern: str, path: Path, number: int) -> tuple[str, ...]:
    """Ansible's `gpu[01:16]` is our `gpu[01-16]`."""
    folded = _ANSIBLE_RANGE.sub(
        lambda m: f"[{m[1]}-{m[2]}/{m[3]}]" if m[3] else f"[{m[1]}-{m[2]}]", str(pattern)
    )
    try:
        return expand(folded)
    except UsageError as exc:
        raise ConfigError.at(path, number, str(exc)) from exc


def _source(groups: dict[str, Group], path: Path) -> InventorySource:
    origin = f"ansible:{path}"
    members = {name: tuple(dict.fromkeys(_members(groups, name, (), path))) for name in groups}
    facts: dict[str, dict[str, Fact]] = {}
    for name, group in _outer_first(groups, members):
        for host in members[name]:
            facts.setdefault(host, {}).update(_facts(group.variables))
    for group in groups.values():
        for host, variables in group.hosts.items():
            facts.setdefault(host, {}).update(_facts(variables))
    nodes = tuple(NodeFacts(host, facts_of_host, origin) for host, facts_of_host in facts.items())
    named = {k: v for k, v in members.items() if k not in ("all", "ungrouped") and v}
    return InventorySource(f"ansible:{path.name}", nodes, named)


def _outer_first(
    groups: dict[str, Group], members: Mapping[str, tuple[str, ...]]
) -> list[tuple[str, Group]]:
    """A group nearer to the host says more: the larger group's variables come first."""
    return sorted(groups.items(), key=lambda item: (item[0] != "all", -len(members[item[0]])))


def _members(
    groups: dict[str, Group], name: str, through: tuple[str, ...], path: Path
) -> Iterator[str]:
    if name in through or len(through) > _DEPTH_LIMIT:
        raise ConfigError(f"{path}: groups name each other: {' -> '.join((*through[-5:], name))}")
    group = groups.get(name, Group())
    yield from group.hosts
    for child in group.children:
        yield from _members(groups, child, (*through, name), path)


def _facts(variables: Mapping[str, object]) -> dict[str, Fact]:
    """What brctl knows to use; a template is Ansible's business and is left out."""
    facts: dict[str, Fact] = {}
    for name, value in variables.items():
        key = _VARIABLES.get(name)
        text = str(value)
        if key is None or value is None or "{{" in text:
            continue
        if key not in _NUMBERS:
            facts[key] = text
        elif text.isdecimal():
            facts[key] = int(text)
    return facts
