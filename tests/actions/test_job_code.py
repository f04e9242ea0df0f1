"""Code changes as verbs: on the copies of the nodes, between stop and start, as it was planned."""

import asyncio
from pathlib import Path

import pytest

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, FailureKind
from brctl.actions.registry import ACTIONS
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.engine.runs.plan import prepare
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.jobs.code import CodeStart
from brctl.model.runs.playbook import Json
from tests.fakes.run_context import NOON, FakeContext, example_code, fake_context

HOT: dict[str, Json] = {"job": "demo", "change": "C-0001"}


def bound_with(folder: Path, **world: object) -> tuple[RunContext, FakeContext]:
    """Four stopped nodes that answer; r2 waits."""
    context = fake_context(folder, code=example_code())
    with context.world.change() as data:
        data |= {"dead": [], "ranks": {}, **world}
    request_change(context, "r2")
    return for_run(context, JournalledRun(context, folder, "R-0001")), context


def request_change(context: FakeContext, version: str, *, urgent: bool = False) -> str:
    return (
        context.jobs.code_ledger("demo")
        .record(version, f"digest-of-{version}", urgent=urgent, why="faster", by="ann", at=NOON)
        .id
    )


async def test_a_node_with_another_copy_is_named_and_nothing_is_switched(tmp_path: Path) -> None:
    bound, context = bound_with(tmp_path, edited=["n3"])
    with pytest.raises(ActionFailed, match=r"code r2: n3 has edited-n3, not digest-of-r2 \(rec"):
        await ACTIONS["job.hot_update"].apply(bound, HOT)
    assert (await context.jobs.get("demo")).code == context.jobs.code_ledger("demo").read().code_of(
        example_code(), None
    )


async def test_a_merge_leaves_a_change_waiting_that_some_node_lacks(tmp_path: Path) -> None:
    """Recovery comes first: the job restarts with the code it had."""
    bound, context = bound_with(tmp_path, edited=["n3"])
    done = await ACTIONS["job.hot_update"].apply(bound, {**HOT, "may_wait": True})
    assert not done.changed
    assert done.say.startswith("C-0001 goes on waiting: code r2: n3 has")
    assert context.jobs.code_ledger("demo").read().pending is not None


async def test_a_node_that_does_not_answer_is_a_matter_of_transport(tmp_path: Path) -> None:
    """So that the playbook asks again."""
    bound, _ = bound_with(tmp_path, dead=["n3"])
    with pytest.raises(ActionFailed, match="n3: no answer") as caught:
        await ACTIONS["job.verify_code"].apply(bound, {"job": "demo"})
    assert caught.value.kind is FailureKind.TRANSPORT


@pytest.mark.parametrize("verb", ["job.hot_update", "job.rollback_code"])
async def test_code_is_not_switched_under_running_ranks(verb: str, tmp_path: Path) -> None:
    """The record would say what is not so."""
    bound, context = bound_with(tmp_path, ranks={"0": "first"})
    context.jobs.code_ledger("demo").apply("C-0001", "R-0000", NOON)
    request_change(context, "r3")
    change = "C-0002" if verb == "job.hot_update" else "C-0001"
    with pytest.raises(ActionFailed, match="still has 1 ranks; stop it first"):
        await ACTIONS[verb].apply(bound, {"job": "demo", "change": change})


async def test_ranks_start_only_from_copies_that_agree_and_the_start_is_on_record(
    tmp_path: Path,
) -> None:
    """Also the first start of all, for which no digest is recorded yet."""
    bound, context = bound_with(tmp_path, edited=["n3"])
    restart: dict[str, Json] = {"job": "demo", "checkpoint": "/ckpt/step-00000038"}
    with pytest.raises(ActionFailed, match=r"n3 has edited-n3, not digest-of-r1 \(that of most"):
        await ACTIONS["job.restart"].apply(bound, restart)
    assert context.world.read()["ranks"] == {}
    with context.world.change() as data:
        data["edited"] = []
    await ACTIONS["job.restart"].apply(bound, restart)
    (start,) = context.jobs.code_ledger("demo").read().starts
    assert (start.run, start.version, start.digest, start.checkpoint) == (
        "R-0001", "r1", "digest-of-r1", "/ckpt/step-00000038",
    )  # fmt: skip


async def test_half_a_start_is_stopped_also_where_the_copies_differ(tmp_path: Path) -> None:
    """Its ranks would hold their GPUs while they wait for partners that never come."""
    bound, context = bound_with(tmp_path, edited=["n3"], ranks={"0": "R-0001"})
    restart: dict[str, Json] = {"job": "demo", "checkpoint": "/ckpt/step-00000038"}
    with pytest.raises(ActionFailed, match="n3 has edited-n3"):
        await ACTIONS["job.restart"].apply(bound, restart)
    assert context.world.read()["ranks"] == {}


async def test_a_lazy_change_is_refused_where_only_urgent_or_due_ones_are_wanted(
    tmp_path: Path,
) -> None:
    bound, context = bound_with(tmp_path)
    verify = ACTIONS["job.verify_code"]
    for only, actual in (("urgent", "C-0001 is not urgent"), ("due", "has not waited for")):
        with pytest.raises(ActionFailed, match=actual):
            await verify.apply(bound, {"job": "demo", "only": only})
    with context.world.change() as data:
        data["seconds"] = 24 * 3600.0
    assert (await verify.apply(bound, {"job": "demo", "only": "due"})).out["version"] == "r2"


def test_a_plan_names_the_change_and_a_later_one_is_not_smuggled_in(tmp_path: Path) -> None:
    """Whoever approves sees release, author and reason, and gets nothing else."""
    bound, context = bound_with(tmp_path, ranks={str(rank): "first" for rank in range(4)})
    playbook = load_playbook(shipped_dir("playbooks") / "restart-in-place.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, {"job": "demo"}))
    (step,) = [s for s in prepared.plan.steps if s.uses == "job.hot_update"]
    assert [(c.subject, c.what) for c in step.changes] == [
        ("job demo code", "r1 -> r2 (C-0001 by ann: faster)")
    ]
    request_change(context, "r3")
    with context.world.change() as data:
        data["ranks"] = {}
    done = asyncio.run(ACTIONS["job.hot_update"].apply(bound, step.arguments))
    assert (done.changed, done.say) == (False, "no code change waits")
    again = asyncio.run(prepare(context, playbook, None, {"job": "demo"}))
    assert again.plan.digest != prepared.plan.digest


async def test_a_rollback_goes_back_to_what_ran_before(tmp_path: Path) -> None:
    """Twice is once; without a change on record there is nothing to take back."""
    bound, context = bound_with(tmp_path)
    rollback = ACTIONS["job.rollback_code"]
    with pytest.raises(ActionFailed, match="no code change is on record"):
        await rollback.apply(bound, {"job": "demo"})
    await ACTIONS["job.hot_update"].apply(bound, HOT)
    other = for_run(context, JournalledRun(context, tmp_path, "R-0002"))
    done = await rollback.apply(other, {"job": "demo", "change": "C-0001"})
    assert done.out == {"change": "C-0001", "version": "r1", "why": "faster", "by": "ann"}
    assert (await rollback.observe(other, {"job": "demo"})).done
    assert (await rollback.undo(other, {"job": "demo"})).changed
    job = await context.jobs.get("demo")
    assert job.code is not None
    assert job.code.version == "r2"


async def test_a_standby_without_the_jobs_code_is_not_admitted(tmp_path: Path) -> None:
    """The next one is tried, while the job still runs."""
    bound, context = bound_with(tmp_path, edited=["s1"])
    start = CodeStart("R-0000", "r1", "", "digest-of-r1", "", NOON)
    context.jobs.code_ledger("demo").started(start)
    done = await ACTIONS["standby.acquire"].apply(bound, {"count": 1, "job": "demo"})
    assert (done.out["nodes"], done.out["rejected"]) == (["s2"], ["s1"])
    reason = (await context.backend.cordons())["s1"].reason
    assert "code r1: s1 has edited-s1, not digest-of-r1 (recorded)" in reason
