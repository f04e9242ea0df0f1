"""Before groups: who answers, who has torch, and whose collectives fail inside the node."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from brctl.engine.search.bisect import Preflight
from brctl.engine.search.group_runner import RoundOrder
from brctl.engine.search.group_runner_torch import NodeReply, TorchRunner
from brctl.model.localisation import FaultKind, Finding
from brctl.model.nodeset import fold

_SURE = 0.999
T = TypeVar("T")


async def preflight(runner: TorchRunner, nodes: Sequence[str], order: RoundOrder) -> Preflight:
    """Say hello to every node, then test each alone; faults found here need no group.

    A node whose test does not end is at fault where the same test ended on half of the nodes.
    """
    replies = await _each(nodes, runner.limit, lambda n: runner.hello(n, order.deadline_s))
    findings, ready, notes = _silent(dict(zip(nodes, replies, strict=True)))
    results = await _each(ready, runner.limit, lambda n: runner.alone(n, order))
    ended = sum(result.failed == 0 for result, _ in results)
    time_suffices = 2 * ended >= len(results)
    fit = []
    for name, (result, why) in zip(ready, results, strict=True):
        if result.silent and not time_suffices:
            text = _no_end(order, why)
            findings.append(Finding(FaultKind.UNDECIDABLE, (name,), 0.0, why=text))
            notes.append(f"{name}: {text}")
            continue
        if result.failed:
            how = "hangs" if result.silent else f"{result.failed} of {result.reps} wrong"
            text = f"a collective inside the node fails: {how}{f' ({why})' if why else ''}"
            findings.append(Finding(FaultKind.NODE, (name,), _SURE, why=text))
            continue
        fit.append(name)
        if result.failed is None:
            notes.append(f"{name}: not tested alone: {why}")
    notes.insert(0, f"preflight: {len(ready)} of {len(nodes)} nodes answer, {len(fit)} fit")
    return Preflight(tuple(fit), tuple(findings), tuple(notes))


def _no_end(order: RoundOrder, why: str) -> str:
    """A hang and a test too large for a slow node look alike; only nodes that ended it tell."""
    reason = f" ({why})" if why else ""
    return (
        f"a collective inside the node did not end in {order.deadline_s:g} s{reason};"
        " hung or slow, no other nodes tell: ask again with a smaller --size"
    )


def _silent(replies: dict[str, NodeReply]) -> tuple[list[Finding], list[str], list[str]]:
    """Nodes without a usable worker: said by name, not convicted of a cause."""
    findings, ready, notes = [], [], []
    for name, reply in replies.items():
        if not reply.problem:
            ready.append(name)
            continue
        why = f"cannot take part: {reply.problem}"
        findings.append(Finding(FaultKind.UNDECIDABLE, (name,), 0.0, why=why))
        notes.append(f"{name}: {why}")
    versions: dict[tuple[str, str], list[str]] = {}
    for name in ready:
        facts = replies[name].facts
        versions.setdefault((str(facts.get("torch")), str(facts.get("gpus"))), []).append(name)
    if len(versions) > 1:
        notes += [f"torch {t}, {g} GPUs: {fold(names)}" for (t, g), names in versions.items()]
    return findings, ready, notes


async def _each(names: Sequence[str], limit: int, ask: Callable[[str], Awaitable[T]]) -> list[T]:
    gate = asyncio.Semaphore(limit)

    async def one(name: str) -> T:
        async with gate:
            return await ask(name)

    return await asyncio.gather(*(one(name) for name in names))
