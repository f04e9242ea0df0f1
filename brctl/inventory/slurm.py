"""Nodes of a Slurm cluster: `sinfo`, partitions as groups, features as labels, jobs as groups."""

import re
import secrets
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from brctl.inventory.commands import ask_tool
from brctl.inventory.facts import Fact, InventorySource, NodeFacts
from brctl.model.errors import UnavailableError, UsageError
from brctl.model.nodeset import expand

# One line per node and partition. Names and partitions cannot hold a bar; features could.
_FORMAT = "%N|%P|%G|%f"

# Not `--json`: its shape has changed with every release, this has not. The name comes last,
# because any user chose it and it may hold anything, also a line that looks like another job's:
# hence the mark in front, which nobody could know.
_JOBS = ("squeue", "-h", "-t", "RUNNING", "-o")
_JOB_FORMAT = "%A|%U|%N|%j"
_JOB_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_COUNT = re.compile(r"[0-9]{1,6}")
_TOPOLOGY = ("scontrol", "-a", "show", "topology")
_SWITCH_LABELS = {"0": "leaf", "1": "spine", "2": "pod"}
"""Labels of the levels of topology/tree; a block of topology/block is a pod."""
_LABEL_FEATURES = ("rack", "leaf", "spine", "zone", "pod", "gpu_model")


def load_slurm(partitions: Sequence[str]) -> InventorySource:
    """The nodes of these partitions, or of all, with the jobs that run on them.

    Raises:
        UnavailableError: Slurm does not answer.
    """
    chosen = ["-p", ",".join(partitions)] if partitions else []
    found = parse_sinfo(ask_tool(["sinfo", "-h", "-N", "-o", _FORMAT, *chosen]), partitions)
    with suppress(UnavailableError):
        # A cluster without a topology has none to tell; whoever needs labels says what is missing.
        found = with_topology(found, ask_tool(_TOPOLOGY))
    mark = secrets.token_hex(8)
    return with_jobs(found, ask_tool([*_JOBS, mark + _JOB_FORMAT, *chosen]), mark)


def with_topology(source: InventorySource, raw: bytes) -> InventorySource:
    """The source with what `scontrol show topology` says as labels; a node's features hold."""
    labels: dict[str, dict[str, Fact]] = defaultdict(dict)
    for line in raw.decode("utf-8", "replace").splitlines():
        for node, label, value in _under(line):
            labels[node].setdefault(label, value)
    nodes = tuple(
        replace(node, facts={**labels[node.name], **node.facts}) if node.name in labels else node
        for node in source.nodes
    )
    return replace(source, nodes=nodes)


def _under(line: str) -> Iterator[tuple[str, str, str]]:
    """The nodes of one switch or block, and its label; none of a line of another shape."""
    fields = dict(word.partition("=")[::2] for word in line.split())
    switch, block = fields.get("SwitchName", ""), fields.get("BlockName", "")
    label = "pod" if block else _SWITCH_LABELS.get(fields.get("Level", ""), "")
    try:
        nodes = expand(fields.get("Nodes", "")) if label and (switch or block) else ()
    except UsageError:
        return
    for node in nodes:
        yield node, label, block or switch


def with_jobs(source: InventorySource, raw: bytes, mark: str = "") -> InventorySource:
    """The source with a group for each job, by its number and by its name: `@job:48213`.

    A name that jobs of two users have names nobody: one of them may have taken the other's.
    """
    known = {node.name for node in source.nodes}
    groups, users = {**source.groups}, defaultdict[str, set[str]](set)
    for line in raw.decode("utf-8", "replace").splitlines():
        for group, user, nodes in (
            _jobs_in(line.removeprefix(mark)) if line.startswith(mark) else ()
        ):
            before = groups.get(group, ())
            groups[group] = (*before, *(n for n in nodes if n in known and n not in before))
            users[group].add(user)
    contested = {group for group, by in users.items() if len(by) > 1}
    return replace(source, groups={k: v for k, v in groups.items() if k not in contested})


def _jobs_in(line: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The groups of one line, and whose they are; a line of another shape has none."""
    number, user, node_list, name = (*line.strip().split("|", 3), "", "", "")[:4]
    try:
        nodes = tuple(expand(node_list)) if number.isdecimal() else ()
    except UsageError:
        return
    if nodes:
        yield f"job:{number}", user, nodes
        if _JOB_NAME.fullmatch(name):
            yield f"job:{name}", user, nodes


def parse_sinfo(raw: bytes, partitions: Sequence[str]) -> InventorySource:
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
    return InventorySource(name, tuple(nodes.values()), {k: tuple(v) for k, v in groups.items()})


def _gpus(gres: str) -> dict[str, Fact]:
    """GPUs of a generic resource such as `gpu:h100:8(S:0-1),nvme:1`; absent when it names none."""
    total = 0
    for part in gres.split(","):
        fields = part.partition("(")[0].split(":")
        if fields[0] == "gpu" and _COUNT.fullmatch(fields[-1]):
            total += int(fields[-1])
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
