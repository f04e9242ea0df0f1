"""lab.json: everything a lab creates, on disk before it is created, so `down` can end it.

The processes of a lab are not listed one by one, because a list is stale at the first fork:
every one of them inherits BRCTL_LAB_TAG, a random word that is in the record before the first one
starts. Network interfaces have names made from the same word.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from brctl.lab.spec import Isolation, LabPaths, LabSpec
from brctl.library.durable_files import write_atomic
from brctl.model.errors import ConfigError

SCHEMA = "brctl.lab/1"
TAG_VARIABLE = "BRCTL_LAB_TAG"
NODE_VARIABLE = "BRCTL_LAB_NODE"


@dataclass(frozen=True, slots=True)
class LabNode:
    """One node as planned."""

    name: str
    role: str
    address: str
    port: int
    rack: str
    leaf: str


@dataclass(frozen=True, slots=True)
class LabRecord:
    """What exists, or may exist, of one lab.

    Attributes:
        tag: In the environment of every process of the lab.
        state: starting, up, stopping.
        bridge: Network bridge of a `netns` lab; "" without one.
        controller_address: Address of this machine on the bridge.
        faults: Faults in force, node by node.
    """

    tag: str
    isolation: Isolation
    spec: LabSpec
    nodes: tuple[LabNode, ...]
    state: str = "starting"
    bridge: str = ""
    controller_address: str = ""
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def node(self, name: str) -> LabNode:
        """The node of a name; KeyError if there is none."""
        return {node.name: node for node in self.nodes}[name]

    def interface(self, name: str) -> str:
        """This machine's end of a node's cable; at most 15 characters, as the kernel wants."""
        return f"bl{self.tag[:6]}-{name}"

    def with_faults(self, node: str, faults: tuple[str, ...]) -> "LabRecord":
        """The record with the faults of one node replaced."""
        faults_by_node = {**self.faults, node: faults}
        return replace(
            self, faults={name: those for name, those in faults_by_node.items() if those}
        )


def write_record(paths: LabPaths, record: LabRecord) -> None:
    """Put the record on disk, durably, replacing the one before."""
    document = {"schema": SCHEMA, **asdict(record)}
    write_atomic(paths.record, json.dumps(document, indent=1))


def read_record(paths: LabPaths) -> LabRecord | None:
    """The record of the lab in a directory; None when there is no lab.

    Raises:
        ConfigError: lab.json is not one of ours.
    """
    try:
        text = paths.record.read_text()
    except FileNotFoundError:
        return None
    try:
        return _parse(json.loads(text))
    except (ValueError, KeyError, TypeError) as exc:
        raise ConfigError(
            f"{paths.record}: not a lab record: {exc}",
            hint="remove the directory by hand if no lab is running in it",
        ) from exc


def _parse(data: dict[str, object]) -> LabRecord:
    if data.pop("schema") != SCHEMA:
        raise ValueError(f"schema is not {SCHEMA}")
    nodes, spec, faults = data.pop("nodes"), data.pop("spec"), data.pop("faults")
    if not (isinstance(nodes, list) and isinstance(spec, dict) and isinstance(faults, dict)):
        raise TypeError("nodes, spec and faults have other types")
    spec["isolation"] = Isolation(str(spec["isolation"]))
    return LabRecord(
        tag=str(data["tag"]),
        isolation=Isolation(str(data["isolation"])),
        spec=LabSpec(**spec),
        nodes=tuple(LabNode(**node) for node in nodes),
        state=str(data["state"]),
        bridge=str(data["bridge"]),
        controller_address=str(data["controller_address"]),
        faults={name: tuple(those) for name, those in faults.items()},
    )


def remove_files(paths: LabPaths) -> None:
    """Remove what the lab wrote, the record last, and the directory if nothing else is in it."""
    for path in paths.owned():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    paths.lock.unlink(missing_ok=True)
    if paths.root.is_dir() and not any(paths.root.iterdir()):
        paths.root.rmdir()
