"""Ask the worker servers of a job's ranks, and NCCL's recorders, what they hold right now."""

import base64
from collections.abc import Collection, Iterator, Sequence

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.flight_collect import dump_prefix
from brctl.engine.live_queries.program import command_of
from brctl.evidence.flight.dump import parse_dump
from brctl.evidence.flight.plain_pickle import UnsafePickleError
from brctl.evidence.job.worker_servers import OK, PING, PIPE, TRACEBACK, WorkerAnswer
from brctl.evidence.ras.facts import RankFacts
from brctl.fanout.gather import gather
from brctl.model.command import Command
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job

RECORDERS = ("dump_nccl_trace_json", "fr_trace_json")
PING_S, ANSWER_S = 1.0, 3.0
"""They answer within 2 ms where they answer."""
BODY_BYTES = 4 << 20


async def ask_workers(
    controller: Controller, job: Job, facts: Sequence[RankFacts]
) -> tuple[WorkerAnswer, ...]:
    """What each rank answers that has a worker server, or a pipe to its recorder."""
    by_node: dict[str, list[RankFacts]] = {}
    for one in facts:
        if one.worker_socket or (one.pipe and dump_prefix(job)):
            by_node.setdefault(one.node, []).append(one)
    found: list[WorkerAnswer] = []
    async for answer in gather(
        controller.transport,
        controller.inventory.pick(by_node),
        lambda node: _command(node, by_node[node.name], dump_prefix(job)),
        limit=controller.settings.ssh.fanout,
    ):
        found += read_workers(answer.stdout, [one.rank for one in by_node[answer.node]])
    return tuple(sorted(found, key=lambda a: (a.rank, a.handler)))


def _command(node: Node, own: Sequence[RankFacts], prefix: str) -> Command:
    ranks = [
        {
            "rank": one.rank, "pid": one.pid, "socket": one.worker_socket,
            "pipe": one.pipe if prefix else "", "dump": prefix,
        }
        for one in own
    ]  # fmt: skip
    request = {
        "ranks": ranks, "ping_s": PING_S, "answer_s": ANSWER_S, "traceback_s": ANSWER_S,
        "limit_bytes": BODY_BYTES,
    }  # fmt: skip
    return command_of(
        node,
        "_worker_server.py",
        request,
        asks="worker-server",
        seconds=len(own) * (2 * PING_S + 3 * ANSWER_S),
        output_bytes=len(own) * 3 * BODY_BYTES,
    )


def read_workers(stdout: bytes, ranks: Collection[int]) -> Iterator[WorkerAnswer]:
    """The lines of one node that are of its own ranks, each handler once."""
    seen = set()
    for line in stdout.splitlines():
        try:
            row = read_foreign_json(line)
        except ForeignJsonError:
            continue
        if not isinstance(row, dict) or type(row.get("rank")) is not int:
            continue
        if row["rank"] not in ranks:
            continue
        key = (row["rank"], str(row.get("handler")))
        if key[1] in (PING, TRACEBACK, PIPE, *RECORDERS) and key not in seen:
            seen.add(key)
            yield WorkerAnswer(*key, str(row.get("outcome"))[:60], _body(row.get("body")))


def _body(value: object) -> bytes:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except ValueError:
        return b""


def recorded_in(answers: Sequence[WorkerAnswer]) -> dict[int, bytes]:
    """Dumps of flight recorders among the answers, by rank."""
    return {
        answer.rank: answer.body
        for answer in answers
        if answer.handler in RECORDERS and answer.outcome == OK and _is_dump(answer)
    }


def _is_dump(answer: WorkerAnswer) -> bool:
    """A recorder that is off has no entries; that says nothing of the rank."""
    try:
        return bool(parse_dump(answer.rank, answer.body).operations)
    except UnsafePickleError:
        return False
