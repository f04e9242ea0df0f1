"""Replay a reduced job in groups of nodes: exit status, NaN and digests decide who fails."""

import asyncio
import json
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.engine.search.group_runner import RoundMeasurement, RoundOrder
from brctl.fanout.contract import Transport
from brctl.library.shipped import node_program
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UsageError
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.localisation import GroupResult

COMMAND_VARIABLE = "BRCTL_REPLAY_COMMAND"
"""In job.yaml's environment: the job's reduced command, run with `/bin/sh -c` on each rank."""

RANK_ADDRESS_LABEL = "rank_address"
_BOOT = (
    "import sys,zlib,json;"
    "b=json.loads(zlib.decompress(sys.stdin.buffer.read()));"
    "exec(compile(b['program'],'replay','exec'),{'__name__':'__main__','ORDER':b['order']})"
)
_LOGIN_S = 30.0
_PORTS = (33000, 2000)


@dataclass(frozen=True, slots=True)
class Replayed:
    """How one group's replay ended.

    Attributes:
        measured: False when nodes could not be reached: nothing is known.
        failed: A rank ended badly, or not at all, or printed NaN.
        digest: What the ranks say of their result; "" when they say nothing.
    """

    measured: bool
    failed: bool
    digest: str = ""
    note: str = ""


@dataclass(slots=True)
class ReplayRunner:
    """Runs the job's reduced command on groups; one replay is one repetition."""

    transport: Transport
    nodes: Mapping[str, Node]
    job: Job

    @property
    def name(self) -> str:
        return "replay"

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        """Replay in all groups at once, as often as asked, and compare digests across groups."""
        answers = []
        for repetition in range(order.reps):
            results = await asyncio.gather(
                *(
                    self._group(order, number, repetition, group)
                    for number, group in enumerate(order.groups)
                )
            )
            answers.append(compare_digests(results, [len(group) for group in order.groups]))
        rows = list(zip(*answers, strict=True))
        notes = [r.note for row in rows for r in row if r.note]
        return RoundMeasurement(tuple(_result(row) for row in rows), notes=tuple(notes[:20]))

    async def _group(
        self, order: RoundOrder, number: int, repetition: int, group: Sequence[str]
    ) -> Replayed:
        first, width = _PORTS
        port = first + (order.number * 131 + number * 7 + repetition) % width
        master = self.nodes[group[0]]
        request = {
            "command": ["/bin/sh", "-c", replay_command(self.job)],
            "workdir": str(self.job.rank_workdir),
            "environment": self.job.rank_environment,
            "ranks_per_node": self.job.ranks_per_node,
            "world_size": len(group) * self.job.ranks_per_node,
            "master": master.labels.get(RANK_ADDRESS_LABEL) or master.address,
            "port": port,
            "deadline_s": max(1.0, order.deadline_s / order.reps),
        }
        answers = await asyncio.gather(
            *(
                self._ask(name, _for_node(request, name, node_rank))
                for node_rank, name in enumerate(group)
            )
        )
        return read_group(answers)

    async def _ask(self, name: str, request: Mapping[str, object]) -> CommandResult:
        bundle = {"program": node_program("fabric/group/replay.py"), "order": request}
        node = self.nodes[name]
        deadline = request["deadline_s"]
        seconds = deadline if isinstance(deadline, float) else 60.0
        command = Command(
            (node.python, "-I", "-S", "-B", "-c", _BOOT),
            zlib.compress(json.dumps(bundle).encode()),
            seconds + _LOGIN_S,
        )
        return await self.transport.run(node, command)

    async def close(self) -> None:
        """Nothing outlives a round."""


def _for_node(request: Mapping[str, object], name: str, node_rank: int) -> Mapping[str, object]:
    environment = request["environment"]
    variables = environment if isinstance(environment, dict) else {}
    return {**request, "node_rank": node_rank, "environment": {**variables, "BRCTL_NODE": name}}


def replay_command(job: Job) -> str:
    """The reduced command of a job.

    Raises:
        UsageError: job.yaml does not say how to replay the job.
    """
    command = job.environment.get(COMMAND_VARIABLE, "")
    if not command:
        raise UsageError(
            f"job {job.name!r} does not say how to replay it",
            hint=f"job.yaml: environment: {{{COMMAND_VARIABLE}: 'python train.py --layers 4'}}",
        )
    return command


def read_group(answers: Sequence[CommandResult]) -> Replayed:
    """One group's end, from what its nodes reported."""
    digests: list[str] = []
    for answer in answers:
        if answer.outcome not in (Outcome.ANSWERED, Outcome.COMMAND_TIMED_OUT):
            why = f"{answer.node}: {answer.detail or answer.outcome.value}; not measured"
            return Replayed(measured=False, failed=False, note=why)
        ranks = _ranks(answer)
        if answer.outcome is Outcome.ANSWERED and not ranks:
            why = f"{answer.node}: its answer cannot be read; not measured"
            return Replayed(measured=False, failed=False, note=why)
        for rank in ranks:
            problem = _problem(rank)
            if problem:
                return Replayed(measured=True, failed=True, note=f"{answer.node}: {problem}")
            digests.append(_digest(rank))
        if answer.outcome is Outcome.COMMAND_TIMED_OUT:
            return Replayed(measured=True, failed=True, note=f"{answer.node}: no end in time")
    return Replayed(measured=True, failed=False, digest="|".join(digests).strip("|"))


def _ranks(answer: CommandResult) -> list[Mapping[str, object]]:
    try:
        document = read_foreign_json(answer.stdout)
    except ForeignJsonError:
        return []
    ranks = document.get("ranks") if isinstance(document, dict) else None
    return [r for r in ranks if isinstance(r, dict)] if isinstance(ranks, list) else []


def _problem(rank: Mapping[str, object]) -> str:
    status = rank.get("exit_status")
    if status is None:
        return "a rank did not end in time"
    if status != 0:
        return f"a rank ended with status {status}"
    loss = _last_report(rank).get("loss")
    if isinstance(loss, float) and not math.isfinite(loss):
        return f"loss is {loss}"
    return ""


def _last_report(rank: Mapping[str, object]) -> Mapping[str, object]:
    """The last line that is a JSON object; `{"loss": NaN, "digest": "..."}` is what counts."""
    lines = rank.get("lines")
    for line in reversed(lines if isinstance(lines, list) else []):
        try:
            value = read_foreign_json(line, finite=False) if isinstance(line, str) else None
        except ForeignJsonError:
            continue
        if isinstance(value, dict):
            return value
    return {}


def _digest(rank: Mapping[str, object]) -> str:
    digest = _last_report(rank).get("digest")
    return digest[:200] if isinstance(digest, str) else ""


def compare_digests(results: Sequence[Replayed], sizes: Sequence[int]) -> list[Replayed]:
    """Groups of one size replay the same steps: a digest of its own is a failure.

    Without a majority among groups of that size nobody can be called wrong.
    """
    compared = list(results)
    for size in set(sizes):
        same = [i for i, s in enumerate(sizes) if s == size and results[i].digest]
        counts = Counter(results[i].digest for i in same)
        usual, votes = counts.most_common(1)[0] if counts else ("", 0)
        for i in same:
            if results[i].digest == usual:
                continue
            if 2 * votes > len(same):
                compared[i] = replace(results[i], failed=True, note="its digest differs")
            else:
                compared[i] = replace(results[i], measured=False, note="no majority of digests")
    return compared


def _result(row: Sequence[Replayed]) -> GroupResult:
    if not all(replay.measured for replay in row):
        return GroupResult(len(row), None)
    return GroupResult(len(row), sum(replay.failed for replay in row))
