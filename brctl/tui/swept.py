"""The newest answer of every node, without decoding what no screen shows.

A sweep of 5,000 nodes with 8 GPUs is a hundred megabytes, nearly all of it evidence that clears.
The file is mapped, each node's answers stay undecoded bytes of it, and only the nodes that are not
well, and the one node a person opens, are ever decoded.
"""

import mmap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from brctl.model.evidence import Evidence, Gap
from brctl.model.report import NodeReport
from brctl.model.sweep import Health, NodeHealth
from brctl.tui.known import main_reason

NEWEST = 20
"""Sweeps looked into for nodes that newer ones did not ask; the same as `sweep_store.latest`."""


class _Node(msgspec.Struct):
    node: str
    health: Health
    report: msgspec.Raw
    evidence: msgspec.Raw
    gaps: msgspec.Raw


class _Sweep(msgspec.Struct):
    id: str
    started_at: datetime
    nodes: list[_Node]


_SWEEP = msgspec.json.Decoder(_Sweep)
_REPORT = msgspec.json.Decoder(NodeReport)
_EVIDENCE = msgspec.json.Decoder(tuple[Evidence, ...])
_GAPS = msgspec.json.Decoder(tuple[Gap, ...])


@dataclass(frozen=True, slots=True)
class Known:
    """A node's newest state; its answers are read when somebody asks for them."""

    health: Health
    at: datetime
    check: str
    detail: str
    _raw: _Node

    def answers(self) -> NodeHealth:
        """Everything the node said.

        Raises:
            msgspec.MsgspecError: The file does not hold what it should.
        """
        return _decoded(self._raw)


def _decoded(raw: _Node) -> NodeHealth:
    return NodeHealth(
        raw.node,
        raw.health,
        _REPORT.decode(raw.report),
        _EVIDENCE.decode(raw.evidence),
        _GAPS.decode(raw.gaps),
    )


@dataclass(frozen=True, slots=True)
class Swept:
    """What is known of the nodes of one state folder.

    Attributes:
        swept_at: Start of the newest sweep.
        unreadable: Files that could not be read.
    """

    nodes: Mapping[str, Known]
    swept_at: datetime | None
    unreadable: tuple[str, ...] = ()


class SweepReader:
    """Reads sweep files; each at most once, because a sweep never changes."""

    def __init__(self) -> None:
        self._read: dict[str, Swept] = {}

    def forget(self) -> None:
        """Read every file again."""
        self._read.clear()

    def newest(self, paths: list[Path], wanted: Collection[str]) -> Swept:
        """Newest first, until every wanted node is known."""
        found: dict[str, Known] = {}
        swept_at: datetime | None = None
        unreadable: list[str] = []
        used: dict[str, Swept] = {}
        for path in sorted(paths, reverse=True)[:NEWEST]:
            used[path.name] = one = self._read.get(path.name) or _read(path)
            swept_at = swept_at or one.swept_at
            unreadable += one.unreadable
            found = {**one.nodes, **found}
            if found.keys() >= set(wanted):
                break
        self._read = used
        return Swept(found, swept_at, tuple(unreadable))


def _read(path: Path) -> Swept:
    try:
        with path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        sweep = _SWEEP.decode(mapped)
        found = Swept(dict(_known(sweep)), sweep.started_at)
        # What was read to find the nodes need not stay in memory; what is opened comes back.
        mapped.madvise(mmap.MADV_DONTNEED)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        return Swept({}, None, (f"{path.name}: {error}",))
    return found


def _known(sweep: _Sweep) -> Iterator[tuple[str, Known]]:
    for node in sweep.nodes:
        check, detail = ("", "") if node.health is Health.OK else main_reason(_decoded(node))
        yield node.node, Known(node.health, sweep.started_at, check, detail, node)
