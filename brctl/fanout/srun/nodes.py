"""What Slurm says of its nodes, and by which way srun may reach each of them. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.command import Outcome
from brctl.model.errors import UsageError
from brctl.model.nodeset import expand

# Neither names nor states hold a bar; the reason is a person's text and comes last.
NODES = ("sinfo", "-h", "-N", "-o", "%N|%P|%T|%G|%u|%E")
JOBS = ("squeue", "-h", "-t", "RUNNING", "-o", "%A|%U|%u|%N")

_SILENT = "*"
_DEFAULT = "*"
_DOWN = re.compile(r"down|fail|unknown|future|power|reboot|boot")
_DRAINED = re.compile(r"drain|maint|reserved")
_FREE = ("idle", "completing")
"""A job that has ended, as our own command before, holds its node for a moment more; srun waits."""
_SOCKETS = re.compile(r"\([^)]*\)")


@dataclass(frozen=True, slots=True)
class SrunRoute:
    """How srun reaches a node, or why it does not.

    Attributes:
        job: Our own running job on the node, into which a step goes; "" for none.
        partition: Where a short allocation of the whole node is asked for; "" for none.
        gres: Generic resources of the whole node. `--exclusive` alone brings none of them, and a
            probe that is shown no GPU would report them all lost.
        outcome: What the attempt ends as without being made; None when there is a way.
        why: One sentence for that.
    """

    job: str = ""
    partition: str = ""
    gres: str = ""
    outcome: Outcome | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """One job that occupies nodes."""

    id: str
    uid: str
    user: str
    nodes: frozenset[str]


def parse_jobs(text: str) -> tuple[RunningJob, ...]:
    """What `JOBS` printed; a line that makes no sense is passed over."""
    return tuple(job for line in text.splitlines() if (job := _job(line)) is not None)


def _job(line: str) -> RunningJob | None:
    cells = [cell.strip() for cell in line.split("|", 3)]
    try:
        return RunningJob(cells[0], cells[1], cells[2], frozenset(expand(cells[3])))
    except (IndexError, UsageError):
        return None


def routes(nodes_text: str, jobs: tuple[RunningJob, ...], uid: int) -> Mapping[str, SrunRoute]:
    """The way to every node that Slurm knows."""
    found: dict[str, SrunRoute] = {}
    for line in nodes_text.splitlines():
        cells = [cell.strip() for cell in line.split("|", 5)]
        if len(cells) < 6:
            continue
        name, partition = cells[0], cells[1]
        # A node is named once for each partition; the default one is marked and wins.
        if name not in found or partition.endswith(_DEFAULT):
            here = [job for job in jobs if name in job.nodes]
            free = SrunRoute(partition=partition.rstrip(_DEFAULT), gres=_whole(cells[3]))
            found[name] = _route(free, cells[2], cells[4:], here, str(uid))
    return found


def _whole(gres: str) -> str:
    """What srun is to ask for: `gpu:h100:8(S:0-1),nvme:1` without where they sit; "" for none."""
    return _SOCKETS.sub("", gres)


def _route(
    free: SrunRoute, state: str, mark: list[str], jobs: list[RunningJob], uid: str
) -> SrunRoute:
    user, reason = mark
    own = next((job for job in jobs if job.uid == uid), None)
    if state.endswith(_SILENT):
        return SrunRoute(outcome=Outcome.UNREACHABLE, why=f"{state} in Slurm: {reason}")
    if own is not None:
        return SrunRoute(job=own.id)
    if jobs:
        return _not_available(f"busy: job {jobs[0].id} of {jobs[0].user} runs there")
    if _DRAINED.search(state) or _DOWN.search(state):
        return _not_available(f"{state} in Slurm by {user}: {reason}")
    if state not in _FREE:
        return _not_available(f"{state} in Slurm")
    return free


def _not_available(why: str) -> SrunRoute:
    return SrunRoute(outcome=Outcome.NOT_AVAILABLE, why=why)
