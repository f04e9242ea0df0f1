"""Nodes beside those that failed are asked for an answer, once most of those are silent."""

import asyncio
from types import SimpleNamespace
from typing import cast

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.conclude import conclude
from brctl.engine.job.control_group import CONTROLS, ask_others
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.fault import FaultClass
from brctl.model.inventory import Inventory, Node
from tests.fakes.nodes import NOW, clear, silent, sweep_of
from tests.fakes.transport import FakeTransport, answered

FLEET = Inventory({f"n{i}": Node(f"n{i}", "x") for i in range(1, 101)})


def controller(dead: int) -> tuple[Controller, FakeTransport]:
    """A fleet of 100 of which the first ones are dead."""

    def answer(node: Node, _command: Command) -> CommandResult:
        if int(node.name[1:]) > dead:
            return answered(node)
        return CommandResult(node.name, Outcome.CONNECT_TIMED_OUT, None, b"", b"", 1.0, "late")

    transport = FakeTransport(answer)
    settings = SimpleNamespace(ssh=SimpleNamespace(fanout=64))
    return cast(
        Controller, SimpleNamespace(inventory=FLEET, transport=transport, settings=settings)
    ), transport


def test_nobody_else_is_asked_while_most_answer() -> None:
    site, transport = controller(dead=1)
    asked = sweep_of(silent("n1"), clear("n2"), clear("n3"))
    assert asyncio.run(ask_others(site, asked)) == ()
    assert transport.commands == []


def test_three_dead_nodes_are_no_dead_network() -> None:
    """The three were all that were asked about; others answer, so it is not the way from here."""
    site, transport = controller(dead=3)
    asked = sweep_of(silent("n1"), silent("n2"), silent("n3"))
    others = asyncio.run(ask_others(site, asked))
    assert 0 < len(others) <= CONTROLS
    assert {command.argv for _, command in transport.commands} == {("true",)}
    assert not {"n1", "n2", "n3"} & {report.node for report in others}
    (alone,) = conclude(asked, None, FLEET, NOW)
    (beside,) = conclude(asked, None, FLEET, NOW, others)
    assert alone.title.startswith("3 of 3 nodes are not reached")
    assert not beside.title.startswith("3 of")


def test_a_fleet_that_is_silent_as_well_settles_that_it_is_the_way() -> None:
    site, _ = controller(dead=100)
    asked = sweep_of(silent("n1"), silent("n2"), silent("n3"))
    others = asyncio.run(ask_others(site, asked))
    (found,) = conclude(asked, None, FLEET, NOW, others)
    assert found.fault is FaultClass.UNKNOWN
    assert found.title.startswith(f"{3 + len(others)} of {3 + len(others)} nodes are not reached")
