"""Who the deciding lines name: rank, host, GPU, device or peer address."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.evidence.logs.event import LogEvent

_RANK_FILE = re.compile(r"rank[-_]?0*(\d+)\b")
_KEYS = {
    "rank": ("rank", "culprit_rank", "slow_rank"),
    "node_rank": ("node_rank", "fault_nodes"),
    "host": ("host",),
    "gpu": ("gpu", "section_gpu"),
    "device": ("device", "disk", "sensor"),
    "peer": ("peer",),
    "pid": ("pid",),
}


@dataclass(frozen=True, slots=True)
class Culprit:
    """What the lines name; empty parts were not named."""

    ranks: tuple[int, ...] = ()
    node_rank: str = ""
    host: str = ""
    gpu: str = ""
    device: str = ""
    peer: str = ""
    pid: str = ""

    def describe(self) -> str | None:
        """In words, or None when nobody is named."""
        parts = []
        if self.ranks:
            parts.append(
                f"rank{'s' if len(self.ranks) > 1 else ''} {', '.join(map(str, self.ranks))}"
            )
        if self.node_rank:
            parts.append(f"node rank {self.node_rank}")
        if self.gpu:
            parts.append(f"GPU {self.gpu}")
        if self.device:
            parts.append(self.device)
        if self.pid and not parts:
            parts.append(f"pid {self.pid}")
        words = ", ".join(parts)
        if self.host:
            return f"{words} on {self.host}" if words else self.host
        if not words and self.peer:
            return f"peer {self.peer}"
        return words or None


PEER_ACCUSED = frozenset({"nccl.connect", "store.connect-timeout"})
"""Lines whose writer could not reach somebody: the one named, not the writer, is the suspect."""

MANY_RANKS = 4
"""When more ranks than this say the same within one input set, the code says it, not a rank."""


def name_culprit(deciding: Sequence[LogEvent], blocks: Iterable[LogEvent]) -> Culprit:
    """The culprit of the deciding lines, completed from torchrun's summary block and file names.

    Args:
        deciding: Root events of the winning class, earliest first.
        blocks: Context lines of torchrun summaries, which name rank and host of a failed child.
    """
    if deciding and all(event.signature.name in PEER_ACCUSED for event in deciding):
        return Culprit(peer=_first(_named(deciding, _KEYS["peer"])))
    parts = {kind: _named(deciding, keys) for kind, keys in _KEYS.items()}
    ranks = tuple(sorted(_numbers(parts["rank"]) | _ranks_of_files(deciding)))
    context = {kind: _named(list(blocks), _KEYS[kind]) for kind in ("rank", "host")}
    if not ranks and not parts["gpu"]:
        ranks = tuple(sorted(_numbers(context["rank"])))
    if len(ranks) > MANY_RANKS:
        ranks = ()
    host = _only(parts["host"]) or (_only(context["host"]) if ranks or not parts["host"] else "")
    return Culprit(
        ranks=ranks,
        node_rank=_only(parts["node_rank"]),
        host=host,
        gpu=_first(parts["gpu"]) or _only(_cuda_device(deciding, ranks, parts["device"])),
        device=_first(parts["device"]),
        peer=_first(parts["peer"]),
        pid=_first(parts["pid"]),
    )


def named_peers(victims: Iterable[LogEvent]) -> Culprit:
    """The peer that victims point at: a named peer beats the reporters, who are its victims."""
    victims = list(victims)
    reporters = {event.fields.get("host", "") for event in victims}
    peers = Counter(event.fields["peer"] for event in victims if "peer" in event.fields)
    accused = [peer for peer, _ in peers.most_common() if peer.split(".")[0] not in reporters]
    exited = [
        e.fields["host"]
        for e in victims
        if e.signature.name == "exit.python" and "host" in e.fields
    ]
    host = exited[0] if exited else ""
    return Culprit(host=host) if host else Culprit(peer=accused[0] if accused else "")


def _named(events: Sequence[LogEvent], keys: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    for event in events:
        fields: Mapping[str, str] = event.fields
        for key in keys:
            if fields.get(key):
                found.setdefault(fields[key].strip(":,"))
    return list(found)


def _numbers(values: Iterable[str]) -> set[int]:
    """Ranks; a line that names several joins them by commas."""
    return {int(rank) for value in values for rank in value.split(",") if rank.isdigit()}


def _cuda_device(
    events: Sequence[LogEvent], ranks: tuple[int, ...], devices: Sequence[str]
) -> list[str]:
    """The CUDA device in NCCL's line prefix, when nothing more telling is named."""
    cuda = [event for event in events if event.signature.name.startswith("cuda.")]
    return [] if ranks or devices else _named(cuda, ("cuda_device",))


def _ranks_of_files(events: Sequence[LogEvent]) -> set[int]:
    matches = (_RANK_FILE.search(event.source.rsplit("/", 1)[-1]) for event in events)
    return {int(match[1]) for match in matches if match}


def _first(values: list[str]) -> str:
    return values[0] if values else ""


def _only(values: list[str]) -> str:
    return values[0] if len(values) == 1 else ""
