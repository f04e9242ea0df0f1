"""All sources of a context, merged in their order into one inventory."""

from collections.abc import Callable, Mapping
from pathlib import Path

from brctl.inventory.facts import Source, build_inventory
from brctl.inventory.hostlist import load_hostlist
from brctl.inventory.own_yaml import load_own_yaml
from brctl.library.config import Settings
from brctl.model.errors import ConfigError, did_you_mean
from brctl.model.inventory import Inventory

LOADERS: Mapping[str, Callable[[Path], Source]] = {
    "file": load_own_yaml,
    "hostlist": load_hostlist,
}


def load_inventory(settings: Settings) -> Inventory:
    """The nodes and groups of a context.

    Raises:
        ConfigError: A source is invalid, or no source names any node.
    """
    sources = load_sources(settings)
    inventory = build_inventory(sources)
    if not inventory.nodes:
        where = inventory.origin or f"context {settings.context!r} lists no inventory"
        raise ConfigError(f"{where}: no node in the inventory")
    return inventory


def load_sources(settings: Settings) -> tuple[Source, ...]:
    """Each source by itself, in the order of the configuration."""
    return tuple(
        _load(kind, value, settings.config_file)
        for entry in settings.inventory
        for kind, value in entry.items()
    )


def _load(kind: str, value: object, config_file: Path | None) -> Source:
    loader = LOADERS.get(kind)
    if loader is None:
        problem = f"inventory source {kind!r} cannot be read yet; {did_you_mean(kind, LOADERS)}"
        raise ConfigError(f"{config_file}: {problem}")
    return loader(Path(str(value)))
