"""One file of every rank, fetched from the nodes that carry them; what did not come is said."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from brctl.fanout.contract import Transport
from brctl.fanout.gather import gather
from brctl.library.shipped import node_program
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job

_MARK = b"\x00==> rank "
_NUMBER = re.compile(rb"\d{1,15}")


@dataclass(frozen=True, slots=True)
class RankFile:
    """The end of one rank's file.

    Attributes:
        is_whole: False when only the last bytes within the limit came.
    """

    rank: int
    node: str
    data: bytes
    is_whole: bool


async def fetch_rank_files(
    transport: Transport,
    nodes: Sequence[Node],
    job: Job,
    path_of: Callable[[int], str],
    *,
    limit_bytes: int,
    fanout: int,
) -> tuple[list[RankFile], list[str]]:
    """The files in rank order, and a sentence for every rank whose file did not come."""
    files: list[RankFile] = []
    notes: list[str] = []

    def command_for(node: Node) -> Command:
        wanted = [f"{rank}:{path_of(rank)}" for rank in job.ranks_on(node.name)]
        return Command(
            argv=(node.python, "-I", "-", str(limit_bytes), *wanted),
            stdin=node_program("_file_tails.py").encode(),
            output_limit_bytes=(limit_bytes + 4096) * max(1, len(wanted)),
            asks=("rank-files",),
        )

    async for answer in gather(transport, nodes, command_for, limit=fanout):
        own = job.ranks_on(answer.node)
        found, other_user = split_files(answer.node, answer.stdout, own)
        files += found
        notes += _missing(answer, job, {file.rank for file in found})
        if other_user:
            notes.append(f"{answer.node}: sent files of ranks it does not carry; not kept")
    return sorted(files, key=lambda file: file.rank), sorted(notes)


def split_files(node: str, stdout: bytes, ranks: Collection[int]) -> tuple[list[RankFile], bool]:
    """The marked parts of one node's answer, and whether it sent what is not its own.

    Lengths are trusted only as far as bytes came. A node that could send the files of another
    one's ranks would choose who is found to hang.
    """
    found: dict[int, RankFile] = {}
    other_user = False
    at = stdout.find(_MARK)
    while at >= 0:
        end = stdout.find(b"\n", at)
        fields = stdout[at + len(_MARK) : end].split() if end >= 0 else []
        if len(fields) != 3 or not all(_NUMBER.fullmatch(fields[n]) for n in (0, 2)):
            break
        start = end + 1
        stop = start + int(fields[2])
        whole = fields[1] == b"ok" and stop <= len(stdout)
        rank = int(fields[0])
        if rank not in ranks or rank in found:
            other_user = True
        elif fields[1] != b"missing":
            found[rank] = RankFile(rank, node, stdout[start:stop], whole)
        at = stdout.find(_MARK, stop)
    return list(found.values()), other_user


def _missing(answer: CommandResult, job: Job, have: set[int]) -> list[str]:
    missing = [rank for rank in job.ranks_on(answer.node) if rank not in have]
    if not missing:
        return []
    why = answer.detail or answer.stderr.decode("utf-8", "replace").strip()[:200]
    if answer.outcome is not Outcome.ANSWERED:
        why = f"{answer.outcome.value}: {why}"
    ranks = ", ".join(map(str, missing))
    return [f"{answer.node}: no file of rank {ranks}: {why or 'no reason given'}"]
