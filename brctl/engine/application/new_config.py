"""The text of a first config.yaml, from where a site already says who its nodes are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from brctl.model.errors import UsageError

NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
INVENTORY_NAME = "inventory.yaml"
_HEAD = {"apiVersion": "brctl.dev/v1"}


@dataclass(frozen=True, slots=True)
class NewConfig:
    """What a first configuration says.

    Attributes:
        context: The name of the cluster.
        source: One inventory source as config.yaml writes it, `{"hostlist": "/etc/hosts.gpu"}`.
        scheduler: Who schedules the nodes.
        ssh: Keys under `ssh:`; empty for none.
        kubernetes: Keys under `kubernetes:`; empty for none.
        hosts: Hosts that are written into an inventory.yaml beside it, merged after the source.
        gpus: How many GPUs each of them has; None when nobody said.
    """

    context: str
    source: Mapping[str, object]
    scheduler: str = "static"
    ssh: Mapping[str, str] = field(default_factory=dict)
    kubernetes: Mapping[str, str] = field(default_factory=dict)
    hosts: Sequence[str] = ()
    gpus: int | None = None


def config_text(new: NewConfig) -> str:
    """The config.yaml.

    Raises:
        UsageError: The context's name is none.
    """
    if not NAMED.fullmatch(new.context):
        raise UsageError(
            f"{new.context!r}: a context has letters, digits, dot, dash, underscore",
            hint="say --name NAME",
        )
    sources = [dict(new.source)] if new.source else []
    sources += [{"file": INVENTORY_NAME}] if new.hosts else []
    here: dict[str, object] = {"inventory": sources}
    if new.scheduler != "static":
        here["scheduler"] = new.scheduler
    if new.kubernetes:
        here["kubernetes"] = dict(new.kubernetes)
    body = {**_HEAD, "kind": "Config", "context": new.context, "contexts": {new.context: here}}
    return _yaml({**body, "ssh": dict(new.ssh)} if new.ssh else body)


def inventory_text(new: NewConfig) -> str:
    """The inventory.yaml: hosts that are reached by their names, and their GPUs."""
    facts = {} if new.gpus is None else {"gpus": new.gpus}
    nodes = {host: dict(facts) for host in new.hosts}
    return _yaml({**_HEAD, "kind": "Inventory", "nodes": nodes})


def _yaml(body: Mapping[str, object]) -> str:
    return yaml.safe_dump(dict(body), sort_keys=False, default_flow_style=None, width=100)


def absolute(path: Path) -> str:
    """A path that means the same from the configuration's own folder."""
    return str(path.expanduser().absolute())
