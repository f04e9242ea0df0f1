"""Evacuate on the fake cluster: the job moves, standbys that lose power too are not taken."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import read_journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.runs.playbook import GuardSpec, Json, Need
from brctl.playbook.steps import StepState
from tests.fakes.run_context import FakeContext, example_job, fake_context
from tests.fakes.run_here import carry

PLAYBOOK = load_playbook(shipped_dir("playbooks") / "evacuate.yaml")


def cluster(folder: Path, **world: Json) -> FakeContext:
    context = fake_context(folder)
    context = replace(
        context, guards=SiteGuards((GuardSpec("blast_radius", {"max_nodes": 6}, "g.yaml:1"),))
    )
    with context.world.change() as data:
        data |= {"dead": [], "spare": [], **world}
    return context


def evacuate(context: FakeContext, nodes: str, **values: Json) -> tuple[Path, ExitCode]:
    prepared = asyncio.run(prepare(context, PLAYBOOK, None, {"nodes": nodes, **values}))
    run_dir = create_run(context, prepared, RunRequest("ann", typed="demo"))
    return run_dir, carry(context, run_dir)


def test_the_job_leaves_the_rack_and_the_rack_is_cordoned(tmp_path: Path) -> None:
    """Without `--set job` it is the job that runs there; one of its nodes is dark already."""
    context = cluster(tmp_path, dead=["n4"])
    run_dir, code = evacuate(context, "n[3-4]")
    assert code is ExitCode.OK, read_journal(run_dir).events[-1].fields
    data = context.world.read()
    assert data["nodes"] == ["n1", "n2", "s1", "s2"]
    assert set(data["cordons"]) == {"n3", "n4"}
    assert set(data["ranks"].values()) == {"R-0001"}


def test_a_standby_that_loses_power_too_is_not_taken(tmp_path: Path) -> None:
    """s1 stands in the same rack: it is cordoned like the others, and s2 takes the rank."""
    context = cluster(tmp_path)
    assert evacuate(context, "n4,s1")[1] is ExitCode.OK
    data = context.world.read()
    assert data["nodes"] == ["n1", "n2", "n3", "s2"]
    assert set(data["cordons"]) == {"n4", "s1"}


def test_too_few_standbys_outside_refuse_before_anything_changes(tmp_path: Path) -> None:
    """Two places to fill and one standby outside the rack, unless an idle node fills the other."""
    context = cluster(tmp_path)
    with pytest.raises(GuardError, match="standby: 1 standbys ready, 2 needed"):
        evacuate(context, "n[3-4],s1")
    assert context.world.read()["effects"] == []
    with context.world.change() as data:
        data["spare"] = ["n9"]
    more = {**context.inventory.nodes, "n9": replace(context.inventory.nodes["n1"], name="n9")}
    context = replace(context, inventory=replace(context.inventory, nodes=more))
    assert evacuate(context, "n[3-4],s1")[1] is ExitCode.OK
    assert sorted(context.world.read()["nodes"]) == ["n1", "n2", "n9", "s2"]


def test_nodes_without_a_job_are_only_cordoned_and_nobody_is_asked(tmp_path: Path) -> None:
    """The job is not touched, and other work is asked to go."""
    context = cluster(tmp_path, guests={"s2": "runs train/x"})
    plan = asyncio.run(prepare(context, PLAYBOOK, None, {"nodes": "s[1-2]"})).plan
    assert plan.people is Need.NONE
    run_dir, code = evacuate(context, "s[1-2]")
    assert code is ExitCode.OK
    assert context.world.read()["effects"] == ["cordon s1", "cordon s2", "evict s2"]
    skipped = read_run(run_dir).record.in_state(StepState.SKIPPED)
    assert skipped == (
        "ckpt",
        "reserve",
        "stop",
        "swap",
        "code",
        "order",
        "choose",
        "restart",
        "prove",
    )


def test_of_several_jobs_a_person_names_one_and_the_other_is_said_in_the_end(
    tmp_path: Path,
) -> None:
    context = cluster(tmp_path)
    demo = context.jobs.all

    async def two() -> Sequence[Job]:
        return [*await demo(), replace(example_job(), name="eval", nodes=("n3",))]

    context.jobs.all = two  # type: ignore[method-assign]  # a second job beside the first
    with pytest.raises(UsageError, match=r"demo on n\[3-4\], eval on n3") as caught:
        evacuate(context, "n[3-4]")
    assert caught.value.hint == "one after the other: --set job=demo"

    async def still_there(nodes: Sequence[str], jobs: Sequence[Job]) -> dict[str, str]:
        return {"n3": "1 ranks of job eval run"} if "n3" in nodes else {}

    context.backend.work_on = context.backend.evict = still_there  # type: ignore[method-assign]  # eval stays
    run_dir, code = evacuate(context, "n[3-4]", job="demo")
    assert code is ExitCode.NEEDS_HUMAN
    assert context.world.read()["nodes"] == ["n1", "n2", "s1", "s2"]
    why = str(read_journal(run_dir).events[-1].fields["why"])
    assert why == "empty: after 60 s n3: 1 ranks of job eval run"


def test_without_a_standby_that_passes_the_rack_is_given_back(tmp_path: Path) -> None:
    """Admission is the last moment at which the job still runs: everything is undone."""
    context = cluster(tmp_path, sick=["s1", "s2"])
    _, code = evacuate(context, "n4")
    assert code is ExitCode.ROLLED_BACK
    assert "n4" not in context.world.read()["cordons"]
    assert set(context.world.read()["ranks"].values()) == {"first"}
