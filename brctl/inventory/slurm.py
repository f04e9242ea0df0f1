"""Nodes of a Slurm cluster: `sinfo`, partitions as groups, features as labels."""

from collections.abc import Sequence

from brctl.inventory.commands import ask_tool
from brctl.inventory.facts import Fact, NodeFacts, Source
from brctl.model.errors import UnavailableError

# One line per node and partition. Names and partitions cannot hold a bar; features could.
_FORMAT = "%N|%P|%G|%f"
_LABEL_FEATURES = ("rack", "leaf", "spine", "zone", "pod", "gpu_model")


def load_slurm(partitions: Sequence[str]) -> Source:
    """The nodes of these partitions, or of all.

    Raises:
        UnavailableError: Slurm does not answer.
    """
    chosen = ["-p", ",".join(partitions)] if partitions else []
    return parse_sinfo(ask_tool(["sinfo", "-h", "-N", "-o", _FORMAT, *chosen]), partitions)


def parse_sinfo(raw: bytes, partitions: Sequence[str]) -> Source:
    """The nodes of `sinfo -h -N -o '%N|%P|%G|%f'`.

    Raises:
        UnavailableError: A line has another shape.
    """
    name = f"slurm:{','.join(partitions) or 'all'}"
    nodes: dict[str, NodeFacts] = {}
    groups: dict[str, list[str]] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        fields = line.strip().split("|", 3)
        if len(fields) != 4:
            raise UnavailableError(f"inventory: sinfo printed {line[:80]!r}")
        node, partition, gres, features = fields
        groups.setdefault(f"part:{partition.rstrip('*')}", []).append(node)
        facts: dict[str, Fact] = {**_gpus(gres), **_labels(features)}
        nodes[node] = NodeFacts(node, facts, name)
    return Source(name, tuple(nodes.values()), {k: tuple(v) for k, v in groups.items()})


def _gpus(gres: str) -> dict[str, Fact]:
    """GPUs of a generic resource such as `gpu:h100:8(S:0-1),nvme:1`; absent when it names none."""
    total = 0
    for part in gres.split(","):
        words = part.partition("(")[0].split(":")
        if words[0] == "gpu" and words[-1].isdecimal():
            total += int(words[-1])
    return {"gpus": total} if total else {}


def _labels(features: str) -> dict[str, Fact]:
    """Features written `rack=r12` or `rack:r12` become labels, the others are left to Slurm."""
    labels: dict[str, Fact] = {}
    for feature in features.split(","):
        for mark in ("=", ":"):
            key, found, value = feature.partition(mark)
            if found and key in _LABEL_FEATURES and value:
                labels[key] = value
    return labels
