"""Test every node with its neighbours: exchanges and pingpong; bandwidth, delay and every bit."""

from collections.abc import Sequence
from dataclasses import dataclass

from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.controller.wiring import Controller
from brctl.engine.search.group_preflight import preflight
from brctl.engine.search.group_runner import GroupRunner, RoundOrder
from brctl.engine.search.group_runner_torch import TorchRunner
from brctl.engine.sweeps.busy_nodes import nodes_of_jobs, refuse_busy
from brctl.evidence.pairs import Pair, PairResult, ring_rounds
from brctl.model.errors import UsageError
from brctl.model.localisation import FaultKind, GroupResult

OPERATIONS = ("all_gather", "all_to_all", "pingpong")
"""Both sides at once, with every bit of the result known; then each way by itself."""

_HINT = "swap the nodes out first, or say --beside-job"


@dataclass(frozen=True, slots=True)
class PairPlan:
    """What to send between neighbours.

    Attributes:
        size_bytes: Of one rank and repetition.
        deadline_s: For one round of pairs; who is silent longer has failed.
        beside_job: Test nodes although ranks of a job run on them.
    """

    nodes: tuple[str, ...]
    size_bytes: int
    reps: int
    deadline_s: float
    beside_job: bool = False


@dataclass(frozen=True, slots=True)
class PairTest:
    """What came of it.

    Attributes:
        left_out: Nodes that took no part, failing alone or not able to.
        failing: Those of them whose collectives fail inside the node.
        notes: Why, as sentences for people.
    """

    results: tuple[PairResult, ...]
    left_out: tuple[str, ...]
    failing: tuple[str, ...]
    notes: tuple[str, ...]


async def exchange_with_neighbours(controller: Controller, plan: PairPlan) -> PairTest:
    """Run the rounds of the ring; nothing outlives them on the nodes.

    Raises:
        GuardError: A job runs on one of the nodes.
        UsageError: Fewer than two nodes.
    """
    refuse_readonly(controller.settings, "a test of pairs")
    if len(plan.nodes) < 2:
        raise UsageError("a pair needs two nodes", hint="name them with -w")
    if not plan.beside_job:
        refuse_busy(nodes_of_jobs(controller), plan.nodes, hint=_HINT)
    runner = TorchRunner(
        controller.transport, controller.inventory.nodes, controller.settings.ssh.fanout
    )
    try:
        order = RoundOrder(0, OPERATIONS[0], plan.size_bytes, plan.reps, (), plan.deadline_s)
        before = await preflight(runner, plan.nodes, order)
        found = await run_rounds(runner, plan, before.nodes)
    finally:
        await runner.close()
    findings = tuple(f"{', '.join(finding.members)}: {finding.why}" for finding in before.findings)
    left_out = tuple(node for node in plan.nodes if node not in before.nodes)
    sure = {n for f in before.findings if f.kind is FaultKind.NODE for n in f.members}
    return PairTest(tuple(found), left_out, tuple(sorted(sure)), findings)


async def run_rounds(runner: GroupRunner, plan: PairPlan, nodes: Sequence[str]) -> list[PairResult]:
    """Every operation between neighbours; a pair that was silent once is not waited for again."""
    found: list[PairResult] = []
    number = 0
    for op in OPERATIONS:
        for ring_round in ring_rounds(nodes):
            silent = {result.pair for result in found if result.silent}
            pairs = tuple(pair for pair in ring_round if pair not in silent)
            number += 1
            if not pairs:
                continue
            order = RoundOrder(number, op, plan.size_bytes, plan.reps, pairs, plan.deadline_s)
            answer = await runner.run(order)
            why = "; ".join((*answer.notes, answer.problem)).strip("; ")
            found += [
                _result(pair, op, group, why)
                for pair, group in zip(pairs, answer.results, strict=True)
            ]
    return found


def _result(pair: Pair, op: str, group: GroupResult, why: str) -> PairResult:
    return PairResult(
        pair=pair,
        op=op,
        reps=group.reps,
        failed=group.failed,
        silent=group.silent,
        gb_per_s=group.busbw_gb_per_s,
        path=group.path,
        why="" if group.failed == 0 else why,
    )
