"""A first configuration: written only when it can be read and names nodes."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from brctl.engine.application.new_config import (
    INVENTORY_NAME,
    NewConfig,
    absolute,
    config_text,
    inventory_text,
)
from brctl.fanout.ssh_config import listed_hosts
from brctl.inventory.hostlist import load_hostlist
from brctl.inventory.load import load_inventory
from brctl.library.config import load_settings
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import UsageError
from brctl.model.nodeset import expand


@dataclass(frozen=True, slots=True)
class InitRequest:
    """Where the nodes are listed, one of these, and how they are logged in to.

    Attributes:
        nodes: A node set; its names are what SSH connects to.
        hosts: A file with a node or folded set a line.
        ssh_config: An OpenSSH client configuration; its hosts without wildcards are the nodes.
        only: Patterns of hosts in it that are nodes, others are jump hosts and the like.
        slurm: Partitions, or `all`.
        k8s: A kubeconfig context.
        gpus: How many GPUs each node of `nodes`, `hosts` or `ssh_config` has; schedulers know it.
        replace: A configuration that is there is kept as `config.yaml.old`.
    """

    context: str
    nodes: str | None = None
    hosts: Path | None = None
    ssh_config: Path | None = None
    only: tuple[str, ...] = ("*",)
    ansible: Path | None = None
    slurm: str | None = None
    k8s: str | None = None
    namespace: str | None = None
    user: str | None = None
    identity: Path | None = None
    known_hosts: Path | None = None
    gpus: int | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class InitDone:
    """What was written, and whom it names."""

    files: tuple[Path, ...]
    context: str
    nodes: tuple[str, ...]
    gpus_known: bool


SOURCES = ("hosts", "nodes", "ssh_config", "ansible", "slurm", "k8s")
FLAGS = "--hosts FILE, -w NODES, --ssh-config FILE, --ansible FILE, --slurm all, --k8s CONTEXT"


def init_config(environ: Mapping[str, str], path: Path, request: InitRequest) -> InitDone:
    """Write a private configuration that works; nothing is written when it would not.

    Raises:
        UsageError: Not exactly one source is named, or a file is there already.
        ConfigError: The source cannot be read, or names no node.
        UnavailableError: The scheduler that should name the nodes does not answer.
    """
    new = _new_config(request)
    texts = {path.name: config_text(new)}
    if new.hosts:
        texts[INVENTORY_NAME] = inventory_text(new)
    _refuse_existing(path, texts, request)
    folder = private_dir(path.parent)
    with tempfile.TemporaryDirectory(prefix=".init-", dir=folder) as trial:
        for name, text in texts.items():
            write_atomic(Path(trial) / name, text)
        alone = {key: value for key, value in environ.items() if key != "BRCTL_CONTEXT"}
        settings = load_settings(alone, None, Path(trial) / path.name)
        nodes = load_inventory(settings).nodes
        known = all(node.gpus is not None for node in nodes.values())
        for name in reversed(texts):  # the configuration last: it is what others look for
            _keep_old(folder / name)
            os.replace(Path(trial) / name, folder / name)
    return InitDone(tuple(folder / name for name in texts), new.context, tuple(nodes), known)


def _new_config(request: InitRequest) -> NewConfig:
    named = [source for source in SOURCES if getattr(request, source) is not None]
    if len(named) != 1:
        said = f"{len(named)} were named" if named else "nothing says where the nodes are listed"
        raise UsageError(f"config init takes one source: {said}", hint=f"one of {FLAGS}")
    new = NewConfig(request.context, {}, ssh=_ssh(request), gpus=request.gpus)
    if request.hosts is not None:
        listed = load_hostlist(request.hosts).nodes if request.gpus is not None else ()
        source = {"hostlist": absolute(request.hosts)}
        return replace(new, source=source, hosts=tuple(node.name for node in listed))
    if request.ansible is not None:
        return replace(new, source={"ansible": absolute(request.ansible)})
    if request.slurm is not None:
        partitions = [] if request.slurm == "all" else request.slurm.split(",")
        chosen = {"partitions": partitions} if partitions else {}
        return replace(new, source={"slurm": chosen}, scheduler="slurm")
    if request.k8s is not None:
        cluster = {"context": request.k8s, "namespace": request.namespace}
        return replace(
            new,
            source={"k8s": {"context": request.k8s}},
            scheduler="kubernetes",
            kubernetes={key: value for key, value in cluster.items() if value},
        )
    return replace(new, hosts=_hosts(request))


def _hosts(request: InitRequest) -> tuple[str, ...]:
    if request.nodes is not None:
        return tuple(expand(request.nodes))
    hosts = listed_hosts(request.ssh_config) if request.ssh_config else ()
    chosen = tuple(h for h in hosts if any(fnmatchcase(h, pattern) for pattern in request.only))
    if not chosen:
        only = f" that fits {', '.join(request.only)}" if request.only != ("*",) else ""
        raise UsageError(f"{request.ssh_config}: names no host without wildcards{only}")
    return chosen


def _ssh(request: InitRequest) -> dict[str, str]:
    files = {
        "identity_file": request.identity,
        "known_hosts": request.known_hosts,
        "config_file": request.ssh_config,
    }
    said = {"user": request.user} if request.user else {}
    return said | {key: absolute(path) for key, path in files.items() if path is not None}


def _refuse_existing(path: Path, names: Iterable[str], request: InitRequest) -> None:
    there = [path.parent / name for name in names if (path.parent / name).exists()]
    if there and not request.replace:
        raise UsageError(
            f"{there[0]} is there already",
            hint="edit it, or say --force: the old one is kept beside it as .old",
        )


def _keep_old(path: Path) -> None:
    if path.exists():
        os.replace(path, path.with_name(f"{path.name}.old"))
