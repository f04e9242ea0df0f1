"""The logs of a job, fetched from its nodes: the last part of every rank's file."""

from collections.abc import Sequence

from brctl.engine.classify import Blocks, Classifier
from brctl.engine.wiring import World
from brctl.evidence.logs.signature import Signature
from brctl.fanout.gather import gather
from brctl.model.answer import Answer, Command, Outcome
from brctl.model.inventory import Node
from brctl.model.job import Job
from brctl.model.log_verdict import LogClassification

TAIL_BYTES = 1 << 20
"""Per rank: the end holds the cause; whole logs of 9,600 ranks belong on no laptop."""

_MARK = b"\x00==> rank "
# Reads each rank's tail and marks where the next begins; a missing file is said, not skipped.
_READ_TAILS = """
import os, sys
limit = int(sys.argv[1])
for name in sys.argv[2:]:
    rank, path = name.split(":", 1)
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - limit))
            data = stream.read(limit)
        state = "ok" if size <= limit else "cut"
    except OSError as error:
        data, state = b"", "missing"
        sys.stderr.write("%s: %s\\n" % (path, error.strerror))
    head = "\\x00==> rank %s %s %d\\n" % (rank, state, len(data))
    sys.stdout.buffer.write(head.encode() + data + b"\\n")
"""


async def classify_job(
    world: World, job: Job, signatures: Sequence[Signature]
) -> LogClassification:
    """Classify the logs of all ranks together; a rank whose log did not come is noted."""
    inputs: list[tuple[str, Blocks]] = []
    notes: list[str] = []
    nodes = [world.inventory.nodes[name] for name in job.nodes if name in world.inventory.nodes]
    limit = world.settings.ssh.fanout
    async for answer in gather(
        world.transport, nodes, lambda node: _command(node, job), limit=limit
    ):
        found = split_tails(answer.stdout)
        inputs += [(f"{answer.node}/rank-{rank:05d}.log", Blocks([data])) for rank, data in found]
        notes += _missing(answer, job, {rank for rank, _ in found})
    inputs.sort(key=lambda pair: pair[0])
    return Classifier(signatures).classify_inputs(inputs, sorted(notes), complete=not notes)


def _command(node: Node, job: Job) -> Command:
    files = [f"{rank}:{job.log_dir}/rank-{rank:05d}.log" for rank in job.ranks_on(node.name)]
    return Command(
        argv=("python3", "-I", "-", str(TAIL_BYTES), *files),
        stdin=_READ_TAILS.encode(),
        output_limit_bytes=(TAIL_BYTES + 4096) * max(1, len(files)),
    )


def split_tails(stdout: bytes) -> list[tuple[int, bytes]]:
    """Rank and bytes of each marked part; lengths are trusted only as far as the bytes reach."""
    found = []
    at = stdout.find(_MARK)
    while at >= 0:
        end = stdout.find(b"\n", at)
        words = stdout[at + len(_MARK) : end].split() if end >= 0 else []
        if len(words) != 3 or not words[0].isdigit() or not words[2].isdigit():
            break
        start = end + 1
        stop = start + int(words[2])
        if words[1] != b"missing":
            found.append((int(words[0]), stdout[start:stop]))
        at = stdout.find(_MARK, stop)
    return found


def _missing(answer: Answer, job: Job, have: set[int]) -> list[str]:
    missing = [rank for rank in job.ranks_on(answer.node) if rank not in have]
    if not missing:
        return []
    why = answer.detail or answer.stderr.decode("utf-8", "replace").strip()[:200]
    if answer.outcome is not Outcome.ANSWERED:
        why = f"{answer.outcome.value}: {why}"
    return [
        f"{answer.node}: no log of rank {', '.join(map(str, missing))}: {why or 'no reason given'}"
    ]
