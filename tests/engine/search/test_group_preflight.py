"""A collective inside one node that does not end: hung, or only too large for a slow machine?"""

from collections.abc import Collection
from dataclasses import dataclass, field

from brctl.engine.search.bisect import Preflight
from brctl.engine.search.group_preflight import preflight
from brctl.engine.search.group_runner import RoundOrder
from brctl.engine.search.group_runner_torch import NodeReply, TorchRunner
from brctl.fanout.local import LocalTransport
from brctl.model.localisation import FaultKind, GroupResult

ORDER = RoundOrder(0, "all_reduce", 1 << 30, 4, (), 60.0)


@dataclass
class Alone(TorchRunner):
    """Nodes that answer at once, except those whose own collective never ends."""

    endless: Collection[str] = field(default_factory=set)

    async def hello(self, name: str, deadline_s: float) -> NodeReply:
        return NodeReply(name)

    async def alone(self, name: str, order: RoundOrder) -> tuple[GroupResult, str]:
        silent = name in self.endless
        return GroupResult(order.reps, order.reps if silent else 0, None, silent=silent), ""


async def looked(nodes: str, endless: str) -> Preflight:
    runner = Alone(LocalTransport(), {}, endless=set(endless.split()))
    return await preflight(runner, nodes.split(), ORDER)


async def test_one_node_that_does_not_end_what_all_others_did_is_at_fault() -> None:
    found = await looked("n1 n2 n3", "n2")
    assert [(f.kind, f.members) for f in found.findings] == [(FaultKind.NODE, ("n2",))]
    assert found.nodes == ("n1", "n3")


async def test_a_node_alone_that_does_not_end_is_not_accused() -> None:
    """Nobody shows that the time suffices: 1 GiB on a busy host was called a broken link, .999."""
    found = await looked("n1", "n1")
    assert [f.kind for f in found.findings] == [FaultKind.UNDECIDABLE]
    assert "ask again with a smaller --size" in found.findings[0].why


async def test_nor_are_most_nodes_at_once() -> None:
    """What is common to them is the size, the load or the software."""
    found = await looked("n1 n2 n3 n4", "n1 n2 n3")
    assert {f.kind for f in found.findings} == {FaultKind.UNDECIDABLE}
    assert found.nodes == ("n4",)
