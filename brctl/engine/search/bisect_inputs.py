"""Files a search reads: which leaf each node is under, and what is known against nodes."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory

_ROWS_LIMIT = 500_000
UNKNOWN_LEAF = "(unknown)"


def read_leaves(path: Path) -> dict[str, str]:
    """Node to leaf from a CSV file with columns node and leaf.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or names a node twice.
    """
    return dict(_read_pairs(path, "leaf"))


def labelled_leaves(inventory: Inventory, names: Sequence[str]) -> dict[str, str]:
    """Node to leaf for the nodes whose inventory labels say it."""
    nodes = inventory.nodes
    return {name: nodes[name].labels["leaf"] for name in names if "leaf" in nodes[name].labels}


def read_prior(path: Path) -> dict[str, float]:
    """Node to odds multiplier from a CSV file with columns node and odds."""
    odds: dict[str, float] = {}
    for line, (node, text) in enumerate(_read_pairs(path, "odds").items(), 2):
        try:
            odds[node] = float(text)
        except ValueError as exc:
            raise ConfigError.at(path, line, f"odds {text!r} is not a number") from exc
        if not 0.0 < odds[node] < 1e9:
            raise ConfigError.at(path, line, f"odds {text} must be above 0 and below 1e9")
    return odds


def _read_pairs(path: Path, column: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream, skipinitialspace=True)
            if not {"node", column} <= set(reader.fieldnames or ()):
                raise ConfigError.at(path, 1, f"needs the columns node and {column}")
            for row in reader:
                node, value = (row["node"] or "").strip(), (row[column] or "").strip()
                if not node or not value:
                    raise ConfigError.at(path, reader.line_num, f"node or {column} is empty")
                if node in found:
                    raise ConfigError.at(path, reader.line_num, f"{node} stands here twice")
                if len(found) >= _ROWS_LIMIT:
                    raise ConfigError.at(path, reader.line_num, f"more than {_ROWS_LIMIT} rows")
                found[node] = value
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    return found


def leaves_for(nodes: Sequence[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """Leaf of each node; empty when the cabling of nobody is known."""
    if not any(node in known for node in nodes):
        return ()
    return tuple(known.get(node, UNKNOWN_LEAF) for node in nodes)
