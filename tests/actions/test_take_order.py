"""job.take_order: a rank order that waits comes along with a restart, once, if it helps."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult
from brctl.actions.job.take_order import JobTakeOrder
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job
from brctl.model.jobs.wanted_order import WantedOrder
from tests.fakes.run_context import NOON, FakeJobs, fake_context
from tests.fakes.world_file import WorldFile

NOW = ("n1", "n2", "n3", "n4")
WANTED = ("n1", "n3", "n2", "n4")
SPINES = {"n1": "a", "n2": "b", "n3": "a", "n4": "b"}
ARGS = {"job": "demo", "order": "O-1"}
VERB = JobTakeOrder()


class TwoPipelines(FakeJobs):
    """The job of the world, in two pipelines of two nodes."""

    async def get(self, name: str) -> Job:
        return replace(await super().get(name), axes=(("pp", 2), ("dp", 2)))


def site(folder: Path, spines: Mapping[str, str] = SPINES) -> tuple[RunContext, WorldFile]:
    """The job stands still on n1 to n4, its pipelines split; an order that joins them waits."""
    context = fake_context(folder)
    with context.world.change() as data:
        data |= {"dead": [], "ranks": {}}
    nodes = {n: Node(n, n, labels={"spine": s}) for n, s in spines.items()}
    context.jobs.wanted_order("demo").write(WantedOrder("O-1", NOW, WANTED, "ann", NOON))
    jobs = TwoPipelines(context.world, context.state_dir)
    return replace(context, inventory=Inventory(nodes), jobs=jobs), context.world


def taken(context: RunContext) -> ActionResult:
    return asyncio.run(VERB.apply(context, ARGS))


def test_the_order_that_waits_is_taken_once(tmp_path: Path) -> None:
    context, world = site(tmp_path)
    assert taken(context).changed
    assert tuple(world.read()["nodes"]) == WANTED
    again = taken(context)
    assert (again.changed, tuple(world.read()["nodes"])) == (False, WANTED)
    assert context.jobs.wanted_order("demo").waiting() is None


def test_a_run_that_died_before_it_acted_goes_on_with_the_same_order(tmp_path: Path) -> None:
    """It had written down from where to where; the nodes stand as before."""
    context, world = site(tmp_path)
    context.jobs.wanted_order("demo").change(
        "O-1", lambda w: replace(w, run=context.run.name, was=NOW, target=WANTED)
    )
    assert taken(context).changed
    assert tuple(world.read()["nodes"]) == WANTED


def test_who_came_in_since_stands_in_for_who_left(tmp_path: Path) -> None:
    context, world = site(tmp_path, {**SPINES, "s1": "a"})
    with world.change() as data:
        data["nodes"] = ["n1", "n2", "s1", "n4"]
    assert taken(context).changed
    assert tuple(world.read()["nodes"]) == ("n1", "s1", "n2", "n4")


def test_an_order_that_helps_no_more_is_dropped_aloud(tmp_path: Path) -> None:
    """By now every pipeline is whole anyway."""
    context, world = site(tmp_path, {**SPINES, "n2": "a", "n4": "a"})
    done = taken(context)
    assert (done.changed, "splits no fewer groups by now: dropped" in done.say) == (False, True)
    assert tuple(world.read()["nodes"]) == NOW
    assert context.jobs.wanted_order("demo").waiting() is None


def test_another_wish_than_the_planned_one_is_left_alone(tmp_path: Path) -> None:
    """Nobody's approval covers what was wanted after it."""
    context, world = site(tmp_path)
    context.jobs.wanted_order("demo").write(WantedOrder("O-2", NOW, WANTED, "ben", NOON))
    assert not taken(context).changed
    assert tuple(world.read()["nodes"]) == NOW


def test_undone_it_waits_again(tmp_path: Path) -> None:
    context, world = site(tmp_path)
    taken(context)
    asyncio.run(VERB.undo(context, ARGS))
    assert tuple(world.read()["nodes"]) == NOW
    waiting = context.jobs.wanted_order("demo").waiting()
    assert waiting is not None
    assert waiting.after == WANTED
