"""The check `fabric.pairs`: the one question that needs two nodes, asked from here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from brctl.engine.controller.wiring import Controller
from brctl.model.command import Outcome
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

if TYPE_CHECKING:
    from brctl.engine.sweeps.pair_test import PairTest


def askable(
    checks: Mapping[str, Check], nodes: Sequence[str], pattern: str = ""
) -> dict[str, Check]:
    """Without those that need two nodes when there is one, unless exactly that check is meant."""
    return {
        name: check
        for name, check in checks.items()
        if len(nodes) > 1 or not check.together or name == pattern
    }


def probed(checks: Mapping[str, Check]) -> dict[str, Check]:
    """The checks whose probe travels to a node."""
    return {name: check for name, check in checks.items() if not check.together}


async def with_pairs(
    controller: Controller, reports: Sequence[NodeReport], checks: Mapping[str, Check]
) -> tuple[NodeReport, ...]:
    """The reports, with the answers of the checks that test nodes with each other added.

    Whoever asks has refused nodes that carry ranks. Nodes that did not answer alone take no part.
    """
    for check in checks.values():
        if check.together:
            reports = await _add(controller, reports, check)
    return tuple(reports)


async def _add(
    controller: Controller, reports: Sequence[NodeReport], check: Check
) -> list[NodeReport]:
    names = tuple(r.node for r in reports if r.outcome is Outcome.ANSWERED)
    if len(names) < 2:
        alone = CheckResult(
            check.name, ProbeStatus.COULD_NOT_MEASURE, notes=("a pair needs two nodes that answer",)
        )
        return [replace(r, results=(*r.results, alone)) for r in reports]
    # It brings the search for faulty groups and numpy along, which every sweep would pay for.
    from brctl.engine.sweeps.pair_test import PairPlan, exchange_with_neighbours
    from brctl.evidence.pairs import node_readings

    plan = PairPlan(
        nodes=names,
        size_bytes=_whole(check, "size_bytes"),
        reps=_whole(check, "reps"),
        deadline_s=check.deadline_s,
        beside_job=True,
    )
    found = await exchange_with_neighbours(controller, plan)
    readings = node_readings(found.results)
    return [
        replace(r, results=(*r.results, _result(check, r.node, found, readings.get(r.node))))
        if r.node in names
        else r
        for r in reports
    ]


def _whole(check: Check, key: str) -> int:
    return int(str(check.parameters[key]))


def _result(
    check: Check, node: str, found: "PairTest", readings: tuple[Measurement, ...] | None
) -> CheckResult:
    if readings is None:
        why = [note for note in found.notes if note.startswith(f"{node}:")]
        return CheckResult(
            check.name, ProbeStatus.COULD_NOT_MEASURE, notes=tuple(why) or ("it took no part",)
        )
    return CheckResult(check.name, ProbeStatus.MEASURED, readings)
