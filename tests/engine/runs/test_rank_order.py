"""A run that puts ranks into another order: stopped, ordered, restarted, or as it was."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.contract import StopReport
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.jobs.wanted_order import WantedOrder
from brctl.model.runs.playbook import Json
from tests.fakes.file_backend import FileBackend
from tests.fakes.run_context import NOON, FakeContext, fake_context
from tests.fakes.run_here import carry

RANK_ORDER = load_playbook(shipped_dir("playbooks") / "rank-order.yaml")
NOW: list[Json] = ["n1", "n2", "n3", "n4"]
WANTED: list[Json] = ["n2", "n1", "n3", "n4"]
MOVED = ["n1", "n2", "s1", "n4"]


class MovedMeanwhile(FileBackend):
    """Somebody swaps a node while the run stops the job."""

    async def stop_job(self, job: Job, grace_s: float) -> StopReport:
        stopped = await super().stop_job(job, grace_s)
        with self._world.change() as data:
            data["nodes"] = MOVED
        return stopped


def healthy(folder: Path) -> FakeContext:
    """A cluster none of whose nodes is dead."""
    context = fake_context(folder)
    with context.world.change() as data:
        data["dead"] = []
    return context


def ordered(
    context: FakeContext, before: Json = NOW, after: Json = WANTED
) -> tuple[Path, ExitCode]:
    """The run, once a person agreed."""
    values = {"job": "demo", "before": before, "after": after}
    prepared = asyncio.run(prepare(context, RANK_ORDER, None, values))
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))
    assert carry(context, run_dir) is ExitCode.WAITING
    assert context.world.read()["nodes"] == NOW
    answer(context, run_dir, "oncall", yes=True, typed="rank 4")
    return run_dir, carry(context, run_dir)


def test_nothing_moves_before_a_person_agrees_and_then_the_job_runs_in_order(
    tmp_path: Path,
) -> None:
    """The ranks were stopped before the order changed, and all run again."""
    context = healthy(tmp_path)
    run_dir, code = ordered(context)
    data = context.world.read()
    assert (code, data["nodes"], len(data["ranks"])) == (ExitCode.OK, WANTED, 4)
    assert read_run(run_dir).record.steps["order"].say == "job demo has the wanted rank order"


def test_an_order_of_other_nodes_is_refused_and_the_job_runs_as_it_is(tmp_path: Path) -> None:
    """Somebody swapped a node meanwhile: what a person agreed to is not what would be done."""
    context = healthy(tmp_path)
    run_dir, code = ordered(replace(context, backend=MovedMeanwhile(context.world)))
    assert code is not ExitCode.OK
    assert "has other nodes by now" in read_run(run_dir).record.steps["order"].error
    assert context.world.read()["nodes"] == MOVED
    assert len(context.world.read()["ranks"]) == 4
    assert "has other nodes by now" in read_run(run_dir).record.steps["ordered"].error


def test_an_order_that_is_typed_stays_as_typed(tmp_path: Path) -> None:
    """A node set would be sorted, and the job restarted as it was."""
    context = healthy(tmp_path)
    _, code = ordered(context, "n[1-4]", "n2,n1,n[3-4]")
    assert (code, context.world.read()["nodes"]) == (ExitCode.OK, WANTED)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("n2,n1,n3,n4", "n1,n2,n3,n4", "in another order"),
        ("n1,n2,n3,n4", "n2,n1,n3", "not of the nodes of job demo: n4"),
        ("n1,n2,n3,n4", "n1,n2,n3,n4", "has this rank order already"),
    ],
)
def test_an_order_that_would_be_refused_leaves_the_ranks_running(
    tmp_path: Path, before: str, after: str, why: str
) -> None:
    """The plan says so, and if somebody agrees all the same, nothing is stopped."""
    context = healthy(tmp_path)
    was = context.world.read()
    run_dir, code = ordered(context, before, after)
    past = read_run(run_dir)
    assert code is ExitCode.ROLLED_BACK
    assert why in past.record.steps["check"].error
    assert context.world.read()["ranks"] == was["ranks"]
    assert context.world.read()["effects"] == was["effects"]


def test_a_run_that_restarts_the_job_names_the_order_that_waits_in_its_plan(tmp_path: Path) -> None:
    """What is wanted after the plan was made is not in it."""
    context = healthy(tmp_path)
    playbook = load_playbook(shipped_dir("playbooks") / "restart-in-place.yaml")
    plan = asyncio.run(prepare(context, playbook, None, {"job": "demo"}))
    assert plan.inputs.job["wanted_order"] == ""
    wish = WantedOrder("O-1", tuple(map(str, NOW)), tuple(map(str, WANTED)), "ann", NOON)
    context.jobs.wanted_order("demo").write(wish)
    plan = asyncio.run(prepare(context, playbook, None, {"job": "demo"}))
    assert plan.inputs.job["wanted_order"] == "O-1"
    said = [change.what for step in plan.plan.steps for change in step.changes]
    assert any("order O-1 wanted by ann" in what for what in said)


def test_the_run_goes_on_where_the_order_that_waited_helps_no_more(tmp_path: Path) -> None:
    """No label says where the nodes stand, so no order is known to be better; the job restarts."""
    context = healthy(tmp_path)
    wish = WantedOrder("O-1", tuple(map(str, NOW)), tuple(map(str, WANTED)), "ann", NOON)
    context.jobs.wanted_order("demo").write(wish)
    playbook = load_playbook(shipped_dir("playbooks") / "restart-in-place.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, {"job": "demo"}))
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))
    assert carry(context, run_dir) is ExitCode.WAITING
    answer(context, run_dir, "oncall", yes=True, typed="y")
    assert carry(context, run_dir) is ExitCode.OK
    steps = read_run(run_dir).record.steps
    assert steps["order"].say == "O-1 splits no fewer groups by now: dropped"
    assert context.world.read()["nodes"] == NOW
