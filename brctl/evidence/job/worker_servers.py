"""What torch's worker servers answer of ranks that stand still, and what their silence says.

A server answers from a thread of its own: `ping` without the interpreter, `dump_traceback` with it.
A rank that answers the first alone is in a native call that holds the interpreter's lock; waiting
for a collective does not. One that takes the connection and answers nothing is stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.evidence.job.absent import ODD_ONES_LIMIT
from brctl.evidence.stacks.snapshot import RankStack
from brctl.evidence.stacks.traceback import read_traceback
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import WORKER_SERVER
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job

PING, TRACEBACK, PIPE = "ping", "dump_traceback", "pipe"
OK, LATE = "ok", "late"


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """One handler's answer of one rank.

    Attributes:
        outcome: `ok`, `late`, or why there is none.
    """

    rank: int
    handler: str
    outcome: str
    body: bytes = b""


def assess_workers(answers: Sequence[WorkerAnswer], job: Job) -> tuple[Evidence, ...]:
    """One observation per rank whose server is silent, or whose interpreter is held."""
    told = {(a.rank, a.handler): a.outcome for a in answers if a.rank < job.world_size}
    asked = [rank for rank, handler in told if handler == PING]
    odd = {rank: why for rank in asked if (why := _why(rank, told))}
    few = len(odd) <= max(1, ODD_ONES_LIMIT * len(asked))
    return tuple(
        Evidence(
            kind="job.worker.silent" if told[rank, PING] == LATE else "job.worker.held",
            subject=Subject(job.node_of(rank), f"rank:{rank}"),
            weight=Weight.HINTS if few else Weight.CONTEXT,
            fault=FaultClass.HANG_MISMATCH,
            role=Role.ROOT if few else Role.CONTEXT,
            source=WORKER_SERVER,
            text=f"rank {rank} {why}",
            raw=" ".join(f"{h}={o}" for (r, h), o in told.items() if r == rank),
        )
        for rank, why in odd.items()
    )


def _why(rank: int, told: Mapping[tuple[int, str], str]) -> str:
    if told[rank, PING] == LATE:
        return "takes a connection to its worker server and says nothing: it is stopped or frozen"
    if told[rank, PING] == OK and told.get((rank, TRACEBACK)) == LATE:
        return "answers, and its Python does not: a native call holds the interpreter's lock"
    return ""


def with_tracebacks(
    stacks: Sequence[RankStack], answers: Sequence[WorkerAnswer]
) -> list[RankStack]:
    """Stacks from outside, and where there is none what the rank itself wrote."""
    own = {
        answer.rank: stack
        for answer in answers
        if answer.handler == TRACEBACK and answer.outcome == OK
        if (stack := read_traceback(answer.body.decode("utf-8", "replace")))
    }
    return [s if s.stack else replace(s, stack=own.get(s.rank, ())) for s in stacks]
