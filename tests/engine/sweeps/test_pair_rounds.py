"""A pair that hangs costs one wait, not one for each operation."""

import asyncio
from dataclasses import dataclass, field

from brctl.engine.search.group_runner import RoundMeasurement, RoundOrder
from brctl.engine.sweeps.pair_test import OPERATIONS, PairPlan, run_rounds
from brctl.evidence.pairs import node_readings
from brctl.model.localisation import GroupResult

NODES = ("n1", "n2", "n3", "n4")


@dataclass
class HangingRunner:
    """Groups with n4 never answer; all others do."""

    orders: list[RoundOrder] = field(default_factory=list)
    name: str = "fake"

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        self.orders.append(order)
        return RoundMeasurement(
            tuple(
                GroupResult(order.reps, order.reps, None, silent=True)
                if "n4" in group
                else GroupResult(order.reps, 0, 1.0)
                for group in order.groups
            )
        )

    async def close(self) -> None:
        """Nothing was started."""


def test_a_pair_that_was_silent_once_is_not_waited_for_again() -> None:
    runner = HangingRunner()
    results = asyncio.run(run_rounds(runner, PairPlan(NODES, 1024, 2, 60.0), NODES))
    with_n4 = [order.op for order in runner.orders for group in order.groups if "n4" in group]
    assert with_n4 == [OPERATIONS[0]] * 2
    assert sum("n4" not in group for order in runner.orders for group in order.groups) == 2 * 3
    odd = {node: [m.value for m in rows if m.name.endswith(".odd")] for node, rows in
           node_readings(results).items()}  # fmt: skip
    assert odd["n4"] == ["silent"]
    assert odd["n1"] == ["none"]
