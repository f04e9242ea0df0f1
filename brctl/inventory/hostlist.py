"""Read a host list: one node set per line, `#` comments; MPI's `gpu01 slots=8` works too."""

from pathlib import Path

from brctl.inventory.facts import Fact, InventorySource, NodeFacts, refuse_duplicates
from brctl.library.trusted_files import read_whole
from brctl.model.errors import ConfigError, UsageError
from brctl.model.nodeset import expand

SIZE_LIMIT_BYTES = 4 << 20


def load_hostlist(path: Path) -> InventorySource:
    """The nodes one file lists.

    Raises:
        ConfigError: A line is not a node set, or names a node twice; names file and line.
    """
    raw = read_whole(path, SIZE_LIMIT_BYTES)
    return parse_hostlist(raw, str(path))


def parse_hostlist(raw: bytes, path: str) -> InventorySource:
    """The nodes of a host list's bytes; `path` names it in errors."""
    nodes: list[NodeFacts] = []
    for number, line in enumerate(raw.splitlines(), start=1):
        try:
            fields = line.decode("utf-8").partition("#")[0].split()
        except UnicodeDecodeError as exc:
            raise ConfigError.at(path, number, "not UTF-8") from exc
        if fields:
            nodes += _parse_fields(fields, path, number)
    refuse_duplicates(nodes)
    return InventorySource(f"hostlist:{Path(path).name}", tuple(nodes))


def _parse_fields(fields: list[str], path: str, number: int) -> list[NodeFacts]:
    facts: dict[str, Fact] = {}
    for field_ in fields[1:]:
        key, equals, value = field_.partition("=")
        if not equals or key not in ("slots", "max_slots", "max-slots"):
            problem = f"{field_[:80]!r} follows a node; only slots=N may"
            raise ConfigError.at(path, number, problem)
        facts[key.replace("-", "_")] = value
    try:
        names = expand(fields[0])
    except UsageError as exc:
        raise ConfigError.at(path, number, str(exc)) from exc
    return [NodeFacts(name, facts, f"hostlist:{path}:{number}") for name in names]
