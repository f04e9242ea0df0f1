"""Verbs that act on machines refuse when somebody would be hurt, and believe only what they see."""

from pathlib import Path
from typing import Any

import pytest

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, FailureKind
from brctl.actions.registry import ACTIONS
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.evidence.kernel_ends import RESET_MARK
from brctl.model.runs.playbook import Json
from tests.fakes.run_context import FakeContext, fake_context

JOBLESS: dict[str, Any] = {"dead": [], "ranks": {}}


def at(folder: Path, **world: Any) -> tuple[RunContext, FakeContext]:
    context = fake_context(folder)
    with context.world.change() as data:
        data |= {**JOBLESS, **world}
    return for_run(context, JournalledRun(context, folder, "R-0001")), context


@pytest.mark.parametrize(
    ("arguments", "world", "expected"),
    [
        ({"nodes": ["s1"]}, {"held": {"s1": 2}}, "s1: processes hold gpu:0 by 2; end them first"),
        (
            {"nodes": ["s1"]},
            {"lost_gpus": ["s1"]},
            "(1 GPUs are missing); a node whose GPUs do not",
        ),
        ({"nodes": ["s1"]}, {"dead": ["s1"]}, "nobody can tell which processes hold its GPUs"),
        ({"nodes": ["n1"]}, {"ranks": {"0": "x"}}, "n1 carries ranks of demo; stop the job first"),
        ({"nodes": ["s1"]}, {"unresettable": ["s1"]}, "currently in use"),
        ({"nodes": ["s1"], "gpus": ["-r"]}, {}, "`gpus` is all, or indexes"),
        ({"nodes": ["s1"], "gpus": "0; reboot"}, {}, "`gpus` is all, or indexes"),
    ],
)
async def test_a_reset_that_would_hurt_somebody_is_refused(
    arguments: dict[str, Json], world: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    """Processes die of a reset; who cannot be seen is not excluded, and no option slips in."""
    bound, context = at(tmp_path, **world)
    with pytest.raises(ActionFailed) as caught:
        await ACTIONS["gpu.reset"].apply(bound, arguments)
    assert expected in str(caught.value)
    assert context.world.read()["effects"] == []


async def test_a_node_of_a_stopped_job_may_be_reset(tmp_path: Path) -> None:
    """Belonging to a job is not carrying it; and whether it was done is looked at, not assumed."""
    bound, context = at(tmp_path)
    verb = ACTIONS["gpu.reset"]
    done = await verb.apply(bound, {"nodes": ["n1"], "gpus": [0, 1]})
    assert done.say == "0, 1 of n1 reset"
    assert (await verb.observe(bound, {"nodes": ["n1"]})).done is None
    assert (await verb.confirm(bound, {"nodes": ["n1"]})).done is True
    with context.world.change() as data:
        data["lost_gpus"] = ["n1"]
    assert (await verb.confirm(bound, {"nodes": ["n1"]})).say == "n1: gpu:0 is lost"


async def test_a_reset_of_all_leaves_a_mark_that_makes_older_xids_history(tmp_path: Path) -> None:
    """One GPU alone leaves none: the Xids of the others still stand."""
    bound, context = at(tmp_path, sealed_logs=["s2"])
    done = await ACTIONS["gpu.reset"].apply(bound, {"nodes": ["s1", "s2"]})
    assert context.world.read()["kernel_logs"] == {"s1": [["/dev/kmsg", f"{RESET_MARK}\n"]]}
    assert done.say.endswith("the kernel log of s2 took no mark, its older Xids still count")
    await ACTIONS["gpu.reset"].apply(bound, {"nodes": ["s1"], "gpus": [1]})
    assert len(context.world.read()["kernel_logs"]["s1"]) == 1


async def test_a_reboot_is_ordered_once_and_seen_by_another_boot(tmp_path: Path) -> None:
    """A controller that died after the order finds the new boot and sends nobody down again."""
    bound, context = at(tmp_path)
    verb, arguments = ACTIONS["node.reboot"], {"nodes": ["s1", "s2"]}
    assert (await verb.observe(bound, arguments)).done is False
    await verb.apply(bound, arguments)
    assert sorted(context.world.read()["effects"]) == ["reboot s1", "reboot s2"]
    assert (await verb.observe(bound, arguments)).done is True
    await verb.apply(bound, arguments)
    assert len(context.world.read()["effects"]) == 2


async def test_a_node_that_does_not_come_back_is_a_timeout(tmp_path: Path) -> None:
    """The limit is named, and nothing is claimed."""
    bound, _ = at(tmp_path, stuck=["s1"])
    with pytest.raises(ActionFailed, match="s1 is not back") as caught:
        await ACTIONS["node.reboot"].apply(bound, {"nodes": ["s1"], "within": "30s"})
    assert caught.value.kind is FailureKind.TIMEOUT
    (tmp_path / "b").mkdir()
    bound, _ = at(tmp_path / "b", dead=["s1"])
    with pytest.raises(ActionFailed, match="through its BMC"):
        await ACTIONS["node.reboot"].apply(bound, {"nodes": ["s1"]})


async def test_nodes_that_carry_ranks_are_not_rebooted(tmp_path: Path) -> None:
    """The job would lose them."""
    bound, context = at(tmp_path, ranks={"1": "x"})
    with pytest.raises(ActionFailed, match="n2 carries ranks of demo"):
        await ACTIONS["node.reboot"].apply(bound, {"nodes": ["n2", "s1"]})
    assert context.world.read()["effects"] == []


async def test_a_burn_in_that_did_not_finish_is_not_passed(tmp_path: Path) -> None:
    """Dead and sick nodes are both named, each with its own reason."""
    bound, _ = at(tmp_path, sick=["n1"], dead=["n2"])
    with pytest.raises(ActionFailed) as caught:
        await ACTIONS["burnin.run"].apply(bound, {"nodes": ["n1", "n2", "n4"]})
    assert "n1 failed: a GPU is lost; n2 unfinished: no answer" in str(caught.value)
    done = await ACTIONS["burnin.run"].apply(bound, {"nodes": ["n1", "n4"], "may_fail": True})
    assert (done.out["passed"], done.out["failed"]) == (["n4"], ["n1"])


async def test_bandwidth_is_compared_with_two_known_good_nodes(tmp_path: Path) -> None:
    """Wrong, slow and silent are three different sentences."""
    bound, _ = at(tmp_path, sick=["n1"], slow=["n2"], dead=["n3"])
    arguments: dict[str, Json] = {"nodes": ["n1", "n2", "n3", "n4"], "min_busbw_ratio": 0.92}
    with pytest.raises(ActionFailed) as caught:
        await ACTIONS["nccl.test"].apply(bound, arguments)
    actual = str(caught.value)
    assert actual.startswith("1 of 4 nodes pass all_reduce beside s[1-2]")
    assert "n1: 1 of 8 collectives with s1 are wrong" in actual
    assert "n2: 33.33 GB/s beside s2, less than 0.92 of 100.00 GB/s" in actual
    assert "n3: no answer beside s1" in actual


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"against": ["n1"]}, "names no other node"),
        ({"against": ["s1"], "min_busbw_ratio": 0.9}, "needs two known-good nodes"),
        ({"op": "broadcast"}, "`op` is one of"),
    ],
)
async def test_a_test_without_a_measure_is_no_test(
    arguments: dict[str, Json], expected: str, tmp_path: Path
) -> None:
    """Nothing passes because there was nothing to compare with."""
    bound, _ = at(tmp_path)
    with pytest.raises(ActionFailed, match=expected):
        await ACTIONS["nccl.test"].apply(bound, {"nodes": ["n1"], **arguments})


async def test_a_named_checkpoint_is_the_one_that_is_read(tmp_path: Path) -> None:
    """The newest is damaged; asked for by name that is an error, unnamed the next whole one."""
    bound, _ = at(tmp_path)
    verb = ACTIONS["ckpt.verify"]
    assert (await verb.apply(bound, {"job": "demo"})).out["step"] == 38
    with pytest.raises(ActionFailed, match="step 40"):
        await verb.apply(bound, {"job": "demo", "path": "/ckpt/step-00000040"})
    with pytest.raises(ActionFailed, match="no checkpoint 'step-1'"):
        await verb.apply(bound, {"job": "demo", "path": "/ckpt/step-1"})


async def test_the_pool_is_filled_with_what_can_be_warmed_and_no_more(tmp_path: Path) -> None:
    """Enough is enough, a node that cannot be warmed is passed over, undo takes out its own."""
    bound, context = at(tmp_path, nodes=["s1", "s2", "n3", "n4"], dead=["n1"])
    verb = ACTIONS["standby.add"]
    arguments: dict[str, Json] = {"nodes": ["n1", "n2"], "size": 1}
    done = await verb.apply(bound, arguments)
    assert done.say == "1 standbys free, 1 wanted; n1: no answer"
    assert context.world.read()["pool"] == ["n2"]
    assert await verb.plan(bound, arguments) == ()
    with pytest.raises(ActionFailed, match="1 standbys free, 2 wanted; n1: no answer; no other"):
        await verb.apply(bound, {"nodes": ["n1", "n2"], "size": 2})
    await verb.undo(bound, arguments)
    assert context.world.read()["pool"] == []


async def test_a_node_that_says_its_ranks_live_on_stops_no_stop_of_the_others(
    tmp_path: Path,
) -> None:
    """It may lie, and it may be right: it is named as not shown, and no start trusts it."""
    ranks = {str(rank): "R-0000" for rank in range(4)}
    bound, context = at(tmp_path, ranks=ranks, undying=["n3"])
    done = await ACTIONS["job.stop"].apply(bound, {"job": "demo"})
    assert (done.out["stopped"], done.out["unconfirmed"]) == ([0, 1, 3], ["n3"])
    assert "ranks [2] live on, says n3" in done.say
    start: dict[str, Json] = {"job": "demo", "checkpoint": "/ckpt/step-00000038"}
    with pytest.raises(ActionFailed, match="demo runs already on n3, started by R-0000"):
        await ACTIONS["job.restart"].apply(bound, start)
    with context.world.change() as data:
        data |= {"ranks": ranks, "undying": ["n1", "n2", "n3", "n4"]}
    with pytest.raises(ActionFailed, match="survive SIGKILL; reboot their nodes"):
        await ACTIONS["job.stop"].apply(bound, {"job": "demo"})


async def test_a_return_that_is_undone_puts_the_old_reason_back(tmp_path: Path) -> None:
    """A guard knows by it that the node computed wrongly; one of others is this run's."""
    old = {
        "reason": "a GPU computes wrong results, seen in R-0007",
        "at": "2026-07-05T12:00:00.000Z",
    }
    owners = {"n1": "brctl:R-0007", "n2": "root"}
    world = {"cordons": {node: {**old, "owner": owner} for node, owner in owners.items()}}
    context, _ = at(tmp_path, **world)
    verb, arguments = ACTIONS["node.uncordon"], {"nodes": ["n1", "n2"]}
    await verb.apply(context, arguments)
    assert await context.backend.cordons() == {}
    await verb.undo(context, arguments)
    now = await context.backend.cordons()
    assert {cordon.reason for cordon in now.values()} == {old["reason"]}
    assert [now[node].owner for node in owners] == ["brctl:R-0007", context.owner_mark]
