"""What the nodes say of each rank's process, before anything is asked inside of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.foreign_json import is_plain_number

TEXTS_LIMIT, TEXT_LIMIT = 64, 400
_VERSION = re.compile(r"(\d{1,2})\.(\d{1,3})\.(\d{1,3})")


@dataclass(frozen=True, slots=True)
class RankFacts:
    """One rank's process, as its node reads it from outside.

    Attributes:
        pid: On the node.
        pid_inside: In its own namespace: what it tells its peers.
        state: The kernel's letter.
        addresses: Of its network.
        library: The NCCL it has loaded, "" for none.
        version: Of that; "" where nothing says.
        enabled: Its NCCL has a RAS service.
        port: Of that service.
        listening: Addresses to ask there; empty where nobody listens.
        foreign: Listeners on that port that are none of its own, by socket.
        own: Its own listeners, by socket; None where its sockets cannot be read.
        worker_socket: Of the torch worker server; "" for none.
        pipe: Stem of the pipe that asks its flight recorder for a dump; "" for none.
    """

    rank: int
    node: str
    pid: int
    pid_inside: int
    state: str = ""
    addresses: frozenset[str] = frozenset()
    library: str = ""
    version: str = ""
    enabled: bool = True
    port: int = 0
    listening: tuple[str, ...] = ()
    sockets: frozenset[str] = frozenset()
    own: frozenset[str] | None = None
    worker_socket: str = ""
    pipe: str = ""


def read_facts(rank: int, node: str, state: str, value: object) -> RankFacts | None:
    """The facts a node sent of one rank; None where it sent none."""
    row = value if isinstance(value, Mapping) else {}
    pid, inside = _whole(row.get("pid")), _whole(row.get("pid_inside"))
    if pid is None or pid < 1:
        return None
    found = row.get("ras")
    ras: Mapping[str, object] = found if isinstance(found, Mapping) else {}
    own = ras.get("own")
    return RankFacts(
        rank=rank,
        node=node,
        pid=pid,
        pid_inside=inside or pid,
        state=state,
        addresses=frozenset(_texts(row.get("addresses"))),
        library=_text(row.get("library")),
        version=_text(row.get("version")),
        enabled=row.get("enabled") is not False,
        port=_whole(ras.get("port")) or 0,
        listening=tuple(_texts(ras.get("addresses"))),
        sockets=frozenset(_texts(ras.get("sockets"))),
        own=frozenset(_texts(own)) if isinstance(own, list) else None,
        worker_socket=_text(row.get("worker_socket")),
        pipe=_text(row.get("pipe")),
    )


def version_of(facts: Iterable[RankFacts]) -> tuple[int, int, int] | None:
    """The oldest NCCL of some ranks; None where one is not known."""
    found = [_VERSION.fullmatch(one.version) for one in facts]
    known = [(int(m[1]), int(m[2]), int(m[3])) for m in found if m]
    return min(known) if known and len(known) == len(found) else None


def strangers(facts: Sequence[RankFacts]) -> int:
    """Listeners on a node's port that are of none of the job's ranks there, as far as is known."""
    own = {socket for one in facts for socket in one.own or ()}
    if any(one.own is None for one in facts):
        return 0
    return len({socket for one in facts for socket in one.sockets} - own)


def _texts(value: object) -> list[str]:
    rows = value[:TEXTS_LIMIT] if isinstance(value, list) else []
    return [row[:TEXT_LIMIT] for row in rows if isinstance(row, str)]


def _text(value: object) -> str:
    return value[:TEXT_LIMIT] if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and is_plain_number(value) else None
