"""Replay a reduced job in groups of nodes: exit status, NaN and digests decide who fails."""

import asyncio
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from brctl.engine.search.group_runner import RoundMeasurement, RoundOrder
from brctl.evidence.numeric import jumped
from brctl.fanout.contract import Transport
from brctl.library.shipped import node_program
from brctl.localise.replay_digests import judge_digests
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UsageError
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.localisation import GroupResult
from brctl.model.nodeset import fold

COMMAND_VARIABLE = "BRCTL_REPLAY_COMMAND"
"""In job.yaml's environment: the job's reduced command, run with `/bin/sh -c` on each rank."""

RANK_ADDRESS_LABEL = "rank_address"
_BOOT = (
    "import sys,zlib,json;"
    "b=json.loads(zlib.decompress(sys.stdin.buffer.read()));"
    "exec(compile(b['program'],'replay','exec'),{'__name__':'__main__','ORDER':b['order']})"
)
_LOGIN_S = 30.0
_OF_DIGESTS = {False: "its digest differs", True: "no majority of digests"}
_PORTS = (33000, 2000)


@dataclass(frozen=True, slots=True)
class Replayed:
    """How one group's replay ended.

    Attributes:
        measured: False when nodes could not be reached: nothing is known.
        failed: A rank ended badly, or not at all, or printed NaN or a jump.
        nonfinite: It printed NaN or a loss that jumped, and every rank came to its end.
        digest: Of what the ranks say of their result; "" when they say nothing.
        kind: Of what they say of their processors and libraries.
    """

    measured: bool
    failed: bool
    digest: str = ""
    note: str = ""
    nonfinite: bool = False
    kind: str = ""


@dataclass(slots=True)
class ReplayRunner:
    """Runs the job's reduced command on groups; one replay is one repetition.

    Attributes:
        variables: What the command is told besides the job's own environment.
    """

    transport: Transport
    nodes: Mapping[str, Node]
    job: Job
    variables: Mapping[str, str] = field(default_factory=dict)

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
            answers.append(results)
        rows = list(zip(*answers, strict=True))
        notes = [r.note for row in rows for r in row if r.note]
        (judged,) = judge_digests([(order.groups, [_result(row) for row in rows])])
        notes += [f"{fold(g)}: {_OF_DIGESTS[r.apart]}" for g, r in _unlike(order, judged)]
        return RoundMeasurement(judged, notes=tuple(notes[:20]))

    async def _group(
        self, order: RoundOrder, number: int, repetition: int, group: Sequence[str]
    ) -> Replayed:
        first, width = _PORTS
        port = first + (order.number * 131 + number * 7 + repetition) % width
        master = self.nodes[group[0]]
        request = {
            "command": ["/bin/sh", "-c", replay_command(self.job)],
            "workdir": str(self.job.rank_workdir),
            "environment": {**self.job.rank_environment, **self.variables},
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
    """One group's end, from what its nodes reported.

    Where a node gave no answer the others' ranks may have ended for that: nothing is known of them.
    """
    for answer in answers:
        if why := _no_answer(answer):
            return Replayed(
                measured=False, failed=False, note=f"{answer.node}: {why}; not measured"
            )
    digests: list[str] = []
    kinds: list[str] = []
    numbers = ""
    for answer in answers:
        for rank in _ranks(answer):
            if problem := _bad_end(rank):
                return Replayed(measured=True, failed=True, note=f"{answer.node}: {problem}")
            numbers = numbers or _bad_numbers(answer.node, rank)
            digests.append(_told(rank, "digest"))
            kinds.append(_told(rank, "kind"))
        if answer.outcome is Outcome.COMMAND_TIMED_OUT:
            return Replayed(measured=True, failed=True, note=f"{answer.node}: no end in time")
    if numbers:
        return Replayed(measured=True, failed=True, note=numbers, nonfinite=True)
    return Replayed(measured=True, failed=False, digest=_short(digests), kind=_short(kinds))


def _no_answer(answer: CommandResult) -> str:
    if answer.outcome not in (Outcome.ANSWERED, Outcome.COMMAND_TIMED_OUT):
        return answer.detail or answer.outcome.value
    readable = answer.outcome is not Outcome.ANSWERED or _ranks(answer)
    return "" if readable else "its answer cannot be read"


def _short(told: Sequence[str]) -> str:
    """One word for what all ranks said, however many they are."""
    return sha256("|".join(told).encode()).hexdigest()[:32] if any(told) else ""


def _ranks(answer: CommandResult) -> list[Mapping[str, object]]:
    try:
        document = read_foreign_json(answer.stdout)
    except ForeignJsonError:
        return []
    ranks = document.get("ranks") if isinstance(document, dict) else None
    return [r for r in ranks if isinstance(r, dict)] if isinstance(ranks, list) else []


def _bad_end(rank: Mapping[str, object]) -> str:
    status = rank.get("exit_status")
    if status is None:
        return "a rank did not end in time"
    return f"a rank ended with status {status}" if status != 0 else ""


def _bad_numbers(node: str, rank: Mapping[str, object]) -> str:
    report = _last_report(rank)
    loss, first = report.get("loss"), report.get("first_loss")
    if isinstance(loss, float) and not math.isfinite(loss):
        return f"{node}: loss is {loss}"
    if not (isinstance(loss, float) and isinstance(first, float)) or first <= 0:
        return ""
    return f"{node}: loss went from {first:.4g} to {loss:.4g}" if jumped(loss, first) else ""


def _last_report(rank: Mapping[str, object]) -> Mapping[str, object]:
    """The last line that is a JSON object: `loss`, `first_loss`, `digest` and `kind` count."""
    lines = rank.get("lines")
    for line in reversed(lines if isinstance(lines, list) else []):
        try:
            value = read_foreign_json(line, finite=False) if isinstance(line, str) else None
        except ForeignJsonError:
            continue
        if isinstance(value, dict):
            return value
    return {}


def _told(rank: Mapping[str, object], key: str) -> str:
    told = _last_report(rank).get(key)
    return told[:200] if isinstance(told, str) else ""


def _unlike(
    order: RoundOrder, judged: Sequence[GroupResult]
) -> list[tuple[tuple[str, ...], GroupResult]]:
    pairs = zip(order.groups, judged, strict=True)
    return [(group, result) for group, result in pairs if result.differs or result.apart]


def _result(row: Sequence[Replayed]) -> GroupResult:
    digests, kind = tuple(r.digest for r in row), next((r.kind for r in row if r.kind), "")
    if not all(replay.measured for replay in row):
        return GroupResult(len(row), None, digests=digests, kind=kind)
    return GroupResult(
        len(row), sum(r.failed for r in row), nonfinite=sum(r.nonfinite for r in row),
        digests=digests, kind=kind,
    )  # fmt: skip
