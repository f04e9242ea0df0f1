"""One sweep as a file: gzipped JSON, `zcat S-*.json.gz | jq`.

A node with eight GPUs answers 200 KB; a thousand of them, swept each minute, would fill a disk with
40 GB of the 200 sweeps that are kept. Every node is packed once, for this file and for the index:
gzip files may be joined, so the file is the head, the nodes one by one, and the end.
"""

import gzip
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from brctl.model.sweeps.sweep import NodeHealth, Sweep

SUFFIX = ".json.gz"
PATTERN = "S-*.json*"
"""Also those that versions before wrote, not packed."""

_LEVEL = 1
"""Answers repeat the same words; more effort buys little and costs a sweep seconds."""

_HEAD_BYTES = 1 << 16
_EITHER = 32 + zlib.MAX_WBITS
"""The index holds gzip, and what versions before packed with zlib alone."""


class Head(msgspec.Struct):
    """What a sweep says of itself; its nodes are not decoded."""

    id: str
    level: int
    checks: tuple[str, ...]
    started_at: datetime
    seconds: float


def pack_nodes(sweep: Sweep) -> dict[str, bytes]:
    """Each node's answer, packed, by name."""
    return {node.node: _pack(msgspec.json.encode(node)) for node in sweep.nodes}


def unpack_node(packed: bytes) -> bytes:
    """The JSON of one node's answer."""
    return zlib.decompress(packed, _EITHER)


def sweep_bytes(sweep: Sweep, packed: Mapping[str, bytes]) -> bytes:
    """The whole file."""
    head = Head(sweep.id, sweep.level, sweep.checks, sweep.started_at, sweep.seconds)
    begin = msgspec.json.encode(head).removesuffix(b"}") + b',"nodes":['
    comma = _pack(b",")
    nodes = comma.join(packed[node.node] for node in sweep.nodes)
    return _pack(begin) + nodes + _pack(b"]}")


def read_head(path: Path) -> Head | None:
    """A file's head without reading its nodes; None when it cannot be read."""
    try:
        if path.suffix != ".gz":
            return msgspec.json.decode(path.read_bytes(), type=Head)
        with path.open("rb") as stream:
            begin = zlib.decompressobj(_EITHER).decompress(stream.read(_HEAD_BYTES), _HEAD_BYTES)
        return msgspec.json.decode(begin + b"]}", type=Head)
    except (msgspec.MsgspecError, OSError, zlib.error):
        return None


def read_sweep(path: Path) -> Sweep | None:
    """A file's sweep; None when it cannot be read."""
    try:
        raw = path.read_bytes()
        return msgspec.json.decode(
            gzip.decompress(raw) if path.suffix == ".gz" else raw, type=Sweep
        )
    except (msgspec.MsgspecError, OSError, EOFError, zlib.error):
        return None


def read_node(packed: bytes) -> NodeHealth:
    """One node's answer out of the index."""
    return msgspec.json.decode(unpack_node(packed), type=NodeHealth)


def _pack(data: bytes) -> bytes:
    return gzip.compress(data, _LEVEL, mtime=0)
