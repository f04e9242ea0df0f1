"""Capture stacks of a job's ranks over SSH, keep them in a folder, and read such folders."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.evidence.job.network.paths import CHECK as NETWORK_CHECK
from brctl.evidence.stacks.analyse import analyse_stacks
from brctl.evidence.stacks.fail_slow import most_flagged
from brctl.evidence.stacks.snapshot import RankStack, read_own_frame, read_text, read_threads
from brctl.library.durable_files import private_dir
from brctl.library.parameters import fill_parameters
from brctl.model.command import Outcome
from brctl.model.errors import UsageError
from brctl.model.evidence_kinds import RANKS_CHECK, STACKS_CHECK
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.jobs.hang import StackAnalysis
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import NodeReport, Value
from brctl.sweep.stream import sweep

FILE_LIMIT_BYTES = 8 << 20
_RANK_FILE = re.compile(r"(\d{1,6})\.(?:json|txt)$")
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_ROUND = re.compile(r"round-(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Captured:
    """One rank's answer as it is kept on disk.

    Attributes:
        process: What a live query must know of its process.
    """

    rank: int
    node: str
    threads: object
    state: str
    kernel_wait: str
    children: object
    note: str
    process: object = None


async def capture(
    controller: Controller, job: Job, nodes: Sequence[str] = ()
) -> tuple[Captured, ...]:
    """One round of stacks; a rank that did not answer is in the result with the reason."""
    reports = await ask_check(
        controller, job, STACKS_CHECK, [n for n in job.nodes if not nodes or n in nodes]
    )
    captured = [one for report in reports for one in _ranks_of(report, job)]
    return tuple(sorted(captured, key=lambda c: c.rank))


async def ask_ranks(controller: Controller, job: Job) -> list[NodeReport]:
    """What the ranks of a job say of themselves now, and nothing else."""
    return await ask_check(controller, job, RANKS_CHECK, job.nodes)


async def ask_network(controller: Controller, job: Job) -> list[NodeReport]:
    """What the kernels of a job's nodes count of its connections now."""
    return await ask_check(controller, job, NETWORK_CHECK, job.nodes)


async def ask_check(
    controller: Controller,
    job: Job,
    name: str,
    nodes: Sequence[str],
    more: Callable[[str], Mapping[str, object]] = lambda _: {},
) -> list[NodeReport]:
    """One check's answers from some of the job's nodes; `more` adds parameters to a node's own."""
    return [report async for report in _asked(controller, job, name, nodes, more)]


def _asked(
    controller: Controller,
    job: Job,
    name: str,
    nodes: Sequence[str],
    more: Callable[[str], Mapping[str, object]] = lambda _: {},
) -> AsyncGenerator[NodeReport, None]:
    """The same answers as they come."""
    return sweep(
        controller.transport,
        controller.inventory.pick(nodes),
        {name: replace(controller.checks[name], level=1)},
        lambda node, asked: {**fill_parameters(asked, node, job), **more(node.name)},
        limit=controller.settings.ssh.fanout,
        root=controller.settings.ssh.root,
        now=controller.now,
    )


async def capture_rounds(
    controller: Controller,
    job: Job,
    folder: Path,
    *,
    times: int,
    every_s: float,
    nodes: Sequence[str] = (),
) -> tuple[Captured, ...]:
    """Rounds of stacks into `folder/round-N/rank-00003.json`; the last one."""
    captured: tuple[Captured, ...] = ()
    for number in range(1, times + 1):
        if number > 1:
            await asyncio.sleep(every_s)
        captured = await capture(controller, job, nodes)
        _save_round(folder / f"round-{number}", captured)
    return captured


async def capture_arriving(
    controller: Controller, job: Job, folder: Path, nodes: Sequence[str]
) -> AsyncGenerator[list[Captured], None]:
    """One round of stacks node by node, each in `folder/round-1` as soon as its node answered."""
    asked = [n for n in job.nodes if not nodes or n in nodes]
    async with aclosing(_asked(controller, job, STACKS_CHECK, asked)) as reports:
        async for report in reports:
            found = _ranks_of(report, job)
            _save_round(folder / "round-1", found)
            yield found


def _save_round(folder: Path, captured: Sequence[Captured]) -> None:
    private_dir(folder)
    for one in captured:
        path = folder / f"rank-{one.rank:05d}.json"
        path.write_text(json.dumps(_document(one)), encoding="utf-8")


def _ranks_of(report: NodeReport, job: Job) -> list[Captured]:
    result = report.result_of(STACKS_CHECK)
    readings: dict[str, dict[str, Value]] = {}
    for m in result.measurements if result else ():
        readings.setdefault(m.subject, {})[m.name] = m.value
    notes = list(result.notes) if result else []
    if report.outcome is not Outcome.ANSWERED:
        notes = [f"{report.node} {report.outcome.value}: {report.detail}"]
    return [
        _captured(rank, report.node, readings.get(f"rank:{rank}", {}), notes)
        for rank in job.ranks_on(report.node)
    ]


def _captured(
    rank: int, node: str, readings: Mapping[str, Value], notes: Sequence[str]
) -> Captured:
    threads = _json(readings.get("job.stack.threads"))
    mark = f"rank {rank}: "
    own = [note.removeprefix(mark) for note in notes if note.startswith(mark)] or list(notes)
    return Captured(
        rank,
        node,
        threads,
        str(readings.get("job.stack.state", "")),
        str(readings.get("job.stack.kernel_wait", "")),
        _json(readings.get("job.stack.children")),
        "" if threads else "; ".join(own) or "no stack and no reason given",
        _json(readings.get("job.stack.process")),
    )


def _json(value: Value | None) -> object:
    try:
        return read_foreign_json(str(value)) if value else None
    except ForeignJsonError:
        return None


def _document(one: Captured) -> dict[str, object]:
    return {
        "rank": one.rank, "node": one.node, "state": one.state, "kernel_wait": one.kernel_wait,
        "threads": one.threads, "children": one.children, "note": one.note,
        "process": one.process,
    }  # fmt: skip


def analyse_folder(folder: Path, job: Job) -> StackAnalysis:
    """The analysis of a folder: the last round names the hang, all rounds the slow group.

    Raises:
        UsageError: There is no such folder, or no rank's file in it.
    """
    rounds = load_rounds(folder)
    then = placed_as_captured(job, rounds[-1])
    result = analyse_stacks(rounds[-1], then)
    slow = most_flagged(rounds, then) if len(rounds) > 1 else ()
    notes = [*result.notes, *_moved(then, job)]
    if slow:
        names = ", ".join(f"{g.axis} {list(g.ranks)}" for g in slow[:3])
        notes.append(f"flagged in most of {len(rounds)} rounds: {names}")
    return replace(result, rounds=len(rounds), notes=tuple(notes))


def placed_as_captured(job: Job, stacks: Sequence[RankStack]) -> Job:
    """The job on the nodes its stacks came from: a swap since then put ranks on others.

    A place of which the files say nothing, or name several nodes, stays as it is now.
    """
    captured: dict[str, set[str]] = {}
    for stack in stacks:
        if stack.node and stack.rank < job.world_size:
            captured.setdefault(job.node_of(stack.rank), set()).add(stack.node)
    then = {now: names.pop() for now, names in captured.items() if len(names) == 1}
    nodes = tuple(then.get(node, node) for node in job.nodes)
    return replace(job, nodes=nodes) if len(set(nodes)) == len(nodes) else job


def _moved(then: Job, job: Job) -> list[str]:
    """That nodes changed since; what is shown is of then."""
    moved = [(old, new) for old, new in zip(then.nodes, job.nodes, strict=True) if old != new]
    places = ", ".join(f"{old} (now {new})" for old, new in moved[:4])
    return [f"captured before ranks moved: {places}; take them anew"] if moved else []


def load_rounds(folder: Path) -> list[list[RankStack]]:
    """The stacks of every round in a folder, oldest first; never empty.

    Raises:
        UsageError: There is no such folder, or no rank's file in it.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such directory")
    rounds = [stacks for path in _round_dirs(folder) if (stacks := _load_round(path))]
    if not rounds:
        raise UsageError(
            f"{folder}: no stacks", hint="file names end in the rank: rank-00003.json, n3.txt"
        )
    return rounds


def _round_dirs(folder: Path) -> list[Path]:
    rounds = [p for p in folder.iterdir() if p.is_dir() and _ROUND.fullmatch(p.name)]
    return sorted(rounds, key=lambda p: int(p.name.split("-")[1])) or [folder]


def _load_round(folder: Path) -> list[RankStack]:
    stacks = []
    for path in sorted(folder.iterdir()):
        match = _RANK_FILE.search(path.name)
        if match and path.is_file():
            stacks.append(_load(path, int(match[1])))
    return stacks


def _load(path: Path, rank: int) -> RankStack:
    """One file: what `stacks dump` wrote, or py-spy's own JSON or text."""
    with path.open("rb") as stream:
        text = stream.read(FILE_LIMIT_BYTES).decode("utf-8", "replace")
    if path.suffix == ".txt":
        return RankStack(rank, read_text(text))
    try:
        value = read_foreign_json(text)
    except ForeignJsonError as exc:
        return RankStack(rank, (), note=f"{path.name}: not JSON: {exc}")
    if isinstance(value, list):
        return RankStack(rank, read_threads(value))
    if not isinstance(value, dict):
        return RankStack(rank, (), note=f"{path.name}: neither a dump nor py-spy's JSON")
    return RankStack(
        rank,
        read_threads(value.get("threads")),
        str(value.get("state") or ""),
        str(value.get("kernel_wait") or ""),
        str(value.get("note") or ""),
        read_own_frame(value.get("threads")),
        _node_name(value.get("node")),
    )


def _node_name(value: object) -> str:
    """A node as `stacks dump` writes it; a folder may come from elsewhere."""
    text = value if isinstance(value, str) else ""
    return text if _NODE_NAME.fullmatch(text) else ""
