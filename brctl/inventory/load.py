"""All sources of a context, merged in their order into one inventory."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from brctl.inventory.ansible import load_ansible
from brctl.inventory.clustershell import folders_of, load_clustershell
from brctl.inventory.commands import Moments, with_last_good
from brctl.inventory.facts import InventorySource, build_inventory
from brctl.inventory.hostlist import load_hostlist
from brctl.inventory.kubernetes import load_kubernetes
from brctl.inventory.own_yaml import load_own_yaml
from brctl.inventory.slurm import load_slurm
from brctl.library.config import Settings
from brctl.model.errors import ConfigError, did_you_mean
from brctl.model.inventory import Inventory


def load_inventory(settings: Settings, told: Moments | None = None) -> Inventory:
    """The nodes and groups of a context; a scheduler that told it between two moments is not asked.

    Raises:
        ConfigError: A source is invalid, or no source names any node.
        UnavailableError: A scheduler does not answer and never did before.
    """
    sources = load_sources(settings, told)
    inventory = build_inventory(sources)
    if not inventory.nodes:
        where = inventory.origin or f"context {settings.context!r} lists no inventory"
        raise ConfigError(f"{where}: no node in the inventory")
    return inventory


def load_sources(settings: Settings, told: Moments | None = None) -> tuple[InventorySource, ...]:
    """Each source by itself, in the order of the configuration."""
    return tuple(
        _load(kind, value, settings, told)
        for entry in settings.inventory
        for kind, value in entry.items()
    )


def _load(kind: str, value: object, settings: Settings, told: Moments | None) -> InventorySource:
    loader = LOADERS.get(kind)
    if loader is None:
        problem = f"no inventory source {kind!r}; {did_you_mean(kind, LOADERS)}"
        raise ConfigError(f"{settings.config_file}: {problem}")
    return loader(value, settings, told)


def _slurm(value: object, settings: Settings, told: Moments | None) -> InventorySource:
    partitions = _texts(value, "partitions", "slurm", settings)
    read = partial(load_slurm, partitions)
    return _recent_or_last_good(read, f"slurm {value}", settings, told)


def _kubernetes(value: object, settings: Settings, told: Moments | None) -> InventorySource:
    known = value if isinstance(value, Mapping) else {"context": value or ""}
    for key in known:
        if key not in ("context", "selector"):
            hint = did_you_mean(str(key), ("context", "selector"))
            raise ConfigError(f"{settings.config_file}: k8s: unknown key {key!r}; {hint}")
    context, selector = str(known.get("context", "")), str(known.get("selector", ""))
    read = partial(load_kubernetes, context, selector)
    return _recent_or_last_good(read, f"k8s {value}", settings, told)


def _recent_or_last_good(
    read: Callable[[], InventorySource], key: str, settings: Settings, told: Moments | None
) -> InventorySource:
    return with_last_good(read, key, settings.state_dir / "inventory", told)


def _texts(value: object, key: str, kind: str, settings: Settings) -> Sequence[str]:
    """Texts from `kind: text`, `kind: {}` or `kind: {key: [text, ...]}`."""
    if isinstance(value, str):
        return (value,)
    if value is None or value == {}:
        return ()
    known: Mapping[str, object] = value if isinstance(value, Mapping) else {}
    found = known.get(key)
    if isinstance(found, list) and len(known) == 1 and all(isinstance(t, str) for t in found):
        return tuple(found)
    raise ConfigError(f"{settings.config_file}: {kind} must be a name or {{{key}: [NAME, ...]}}")


LOADERS: Mapping[str, Callable[[object, Settings, Moments | None], InventorySource]] = {
    "file": lambda value, *_: load_own_yaml(Path(str(value))),
    "hostlist": lambda value, *_: load_hostlist(Path(str(value))),
    "ansible": lambda value, *_: load_ansible(Path(str(value))),
    "clustershell": lambda value, settings, _: load_clustershell(
        folders_of(value, settings.config_file)
    ),
    "slurm": _slurm,
    "k8s": _kubernetes,
}
