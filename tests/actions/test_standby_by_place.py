"""standby.acquire takes, of equals, the one that stands where the lost node stood."""

from dataclasses import replace
from pathlib import Path

import pytest

from brctl.actions.context import RunContext
from brctl.actions.registry import ACTIONS
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.model.inventory import Inventory
from brctl.model.runs.playbook import Json
from tests.fakes.run_context import fake_context

ACQUIRE = ACTIONS["standby.acquire"]
SPINES = {"n1": "a", "n2": "a", "n3": "a", "n4": "a", "s1": "b", "s2": "a"}
LOSES_N3: dict[str, Json] = {"count": 1, "job": "demo", "replacing": ["n3"]}


def context_of(folder: Path, spines: dict[str, str], **world: object) -> RunContext:
    """The fake cluster with a spine on each node; s1 is the pool's first."""
    context = fake_context(folder)
    with context.world.change() as data:
        data |= {"dead": [], **world}
    bound = for_run(context, JournalledRun(context, folder, "R-0001"))
    nodes = {
        name: replace(node, labels={"spine": spines[name]} if spines.get(name) else {})
        for name, node in context.inventory.nodes.items()
    }
    return replace(bound, inventory=Inventory(nodes))


@pytest.mark.parametrize(("cold_s", "chosen"), [(240.0, "s2"), (2000.0, "s1")])
async def test_a_cold_standby_in_the_right_place_may_beat_a_ready_one_elsewhere(
    tmp_path: Path, cold_s: float, chosen: str
) -> None:
    """2 % of the twelve hours until the next stop are 864 s."""
    context = context_of(tmp_path, SPINES, cold_s={"s2": cold_s})
    done = await ACQUIRE.apply(context, LOSES_N3)
    assert done.out["nodes"] == [chosen]
    longer = "dp groups split: 0 -> 1, steps about 2.0% longer (assumed)"
    assert done.say.endswith("no further dp group is split" if chosen == "s2" else longer)


async def test_the_plan_names_the_same_standby_and_what_it_means(tmp_path: Path) -> None:
    """Planned is what is done."""
    changes = await ACQUIRE.plan(context_of(tmp_path, SPINES), LOSES_N3)
    assert [(c.subject, c.what, c.node) for c in changes] == [
        ("s2", "standby -> reserved", "s2"),
        ("placement", "no further dp group is split", ""),
    ]


async def test_standbys_come_in_the_order_of_those_they_replace(tmp_path: Path) -> None:
    """n1 stands in b by now, so s1 of b takes its place and s2 that of n3."""
    context = context_of(tmp_path, {**SPINES, "n1": "b", "n2": "b"})
    both: dict[str, Json] = {"count": 2, "job": "demo", "replacing": ["n3", "n1"]}
    assert (await ACQUIRE.apply(context, both)).out["nodes"] == ["s2", "s1"]


async def test_one_that_fails_admission_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    """The swap goes on elsewhere and says what that costs."""
    done = await ACQUIRE.apply(context_of(tmp_path, SPINES, sick=["s2"]), LOSES_N3)
    assert done.out["nodes"] == ["s1"]
    assert "s2 rejected; dp groups split: 0 -> 1" in done.say


async def test_an_unknown_place_is_said_and_without_labels_nothing_changes(
    tmp_path: Path,
) -> None:
    """Silence is not "the same"; a fleet nobody labelled is swapped as ever."""
    context = context_of(tmp_path, {**SPINES, "s2": ""}, cold_s={"s1": 2000.0})
    done = await ACQUIRE.apply(context, LOSES_N3)
    assert done.say.endswith("where s2 stands is not known")
    await ACQUIRE.undo(context, LOSES_N3)
    bare = context_of(tmp_path, {}, cold_s={})
    assert (await ACQUIRE.apply(bare, LOSES_N3)).say == "s1 reserved"


async def test_a_standby_that_left_the_inventory_is_no_candidate(tmp_path: Path) -> None:
    """The pool still names s1 when the hostfile no longer does: nobody could ask it anything."""
    context = context_of(tmp_path, SPINES, cold_s={"s2": 2000.0})
    listed = {name: node for name, node in context.inventory.nodes.items() if name != "s1"}
    context = replace(context, inventory=Inventory(listed))
    assert [c.subject for c in await ACQUIRE.plan(context, LOSES_N3)] == ["s2", "placement"]


async def test_idle_nodes_for_the_shortfall_are_chosen_by_place_too(tmp_path: Path) -> None:
    """n1 and n2 carry the job; of the other idle ones the one in the right place is taken."""
    context = context_of(tmp_path, SPINES, spare=["w1", "w2"], nodes=["n1", "n2", "n3", "n4"])
    nodes = dict(context.inventory.nodes)
    for name, spine in (("w1", "b"), ("w2", "a")):
        nodes[name] = replace(nodes["n1"], name=name, labels={"spine": spine})
    three: dict[str, Json] = {"count": 3, "job": "demo", "replacing": ["n1", "n2", "n3"]}
    done = await ACQUIRE.apply(replace(context, inventory=Inventory(nodes)), three)
    assert set(done.out["nodes"]) == {"s1", "s2", "w2"}  # type: ignore[arg-type]  # node names
    assert done.out["spares"] == ["w2"]
