"""One answer of the RAS service as typed values, whichever of its forms it came in."""

from collections.abc import Mapping
from dataclasses import dataclass, field


class NotRasError(ValueError):
    """The bytes are no answer of the RAS service."""


@dataclass(frozen=True, slots=True, order=True)
class RasProcess:
    """A process of the job as NCCL knows it.

    Attributes:
        host: Its address, "" when NCCL does not know it.
        pid: In its own namespace; None when NCCL does not know it.
        gpus: Their numbers on the node.
    """

    host: str
    pid: int | None
    gpus: tuple[int, ...] = ()

    def __str__(self) -> str:
        gpus = ", ".join(map(str, self.gpus))
        who = "unknown process" if self.pid is None else f"process {self.pid}"
        return f"{who} on {self.host or 'unknown node'}" + (f" (GPU {gpus})" if gpus else "")


@dataclass(frozen=True, slots=True)
class RasMember:
    """A rank of one communicator: its number counts inside of it, not in the job."""

    rank: int
    process: RasProcess | None


@dataclass(frozen=True, slots=True)
class Launched:
    """Ranks of a communicator that launched equally many operations of one kind.

    Attributes:
        operation: `AllReduce`; "" where all kinds are counted together (before 2.26).
        ranks: How many they are; the text names only the few.
        listed: Those of them that are named.
    """

    operation: str
    count: int
    ranks: int
    listed: tuple[RasMember, ...] = ()


@dataclass(frozen=True, slots=True)
class InState:
    """Ranks of a communicator in one state: NOCOMM, INIT, RUNNING, FINALIZE, ABORT."""

    state: str
    ranks: int
    listed: tuple[RasMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """Ranks of a communicator with one error of NCCL's."""

    error: str
    ranks: int
    listed: tuple[RasMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Communicator:
    """One communicator; the text tells only of those with something to tell.

    Attributes:
        name: Its hash in hexadecimal digits.
        size: Its ranks; None where the text does not lead to it.
        missing: Ranks that gave no data, and how many they are.
        unknown: Ranks of which nobody knows anything.
    """

    name: str
    size: int | None = None
    missing: tuple[RasMember, ...] = ()
    missing_ranks: int = 0
    unknown: int = 0
    launched: tuple[Launched, ...] = ()
    states: tuple[InState, ...] = ()
    failed: tuple[Failed, ...] = ()


@dataclass(frozen=True, slots=True)
class RasAnswer:
    """What one question brought.

    Attributes:
        version: Of the NCCL that answered, `2.30.7`; "" where it does not say.
        form: `text` or `json`.
        communicators: Those it tells of.
        total: How many communicators there are.
        ranks: In the largest group of communicators.
        in_setup: Communicators whose ranks are still being set up.
        silent: Processes that gave no data, of `silent_processes` ones.
        dead: Processes given up for good, of `dead_processes` ones.
        timeouts: While the data were gathered.
        is_whole: The answer did not break off.
        notes: What was mended or could not be read.
    """

    version: str
    form: str
    communicators: tuple[Communicator, ...] = ()
    total: int = 0
    ranks: int = 0
    in_setup: int = 0
    silent: tuple[RasProcess, ...] = ()
    silent_processes: int = 0
    dead: tuple[RasProcess, ...] = ()
    dead_processes: int = 0
    timeouts: int = 0
    is_whole: bool = True
    notes: tuple[str, ...] = ()
    by_name: Mapping[str, Communicator] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {c.name: c for c in self.communicators})


def is_cut(answer: RasAnswer) -> bool:
    """Whether the answer counts what it does not name, which the other form would."""
    if len(answer.silent) < answer.silent_processes or len(answer.dead) < answer.dead_processes:
        return True
    behind = [c for c in answer.communicators if len({n.count for n in c.launched}) > 1]
    unnamed = any(
        len(row.listed) < row.ranks for c in behind for row in lagging_rows(c)
    )  # fmt: skip
    return unnamed or len(behind) > 1 or any(_has_nameless(c) for c in answer.communicators)


POINT_TO_POINT = frozenset({"send", "recv", "sendrecv"})
"""The stages of a pipeline rightly launch unequally many of them."""


def lagging_rows(communicator: Communicator) -> tuple[Launched, ...]:
    """The rows of ranks that launched fewer collectives of a kind than others did."""
    rows = [n for n in communicator.launched if n.operation.lower() not in POINT_TO_POINT]
    most: dict[str, int] = {}
    for row in rows:
        most[row.operation] = max(row.count, most.get(row.operation, 0))
    return tuple(row for row in rows if row.count < most[row.operation])


def _has_nameless(communicator: Communicator) -> bool:
    named = [member for member in communicator.missing if member.process is not None]
    return len(named) < communicator.missing_ranks
