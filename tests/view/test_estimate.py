"""What a plan costs is said before anybody agrees: measured, bounded, or not known and why."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.actions.registry import ACTIONS
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.model.inventory import Inventory
from brctl.model.runs.estimate import Estimate, LostSteps, Took
from brctl.model.runs.plan import Change, Plan, PlannedStep, Sign
from brctl.model.runs.playbook import Json, Need, Safety
from brctl.view.runs.estimate import estimate_document, estimate_lines
from brctl.view.runs.plan import plan_page
from brctl.view.runs.way_back import planned_way_back
from tests.fakes.run_context import fake_context

STEPS = {
    "cordon": ("node.cordon", Safety.REVERSIBLE, "n3"),
    "reserve": ("standby.acquire", Safety.REVERSIBLE, "n9"),
    "stop": ("job.stop", Safety.DESTRUCTIVE, "job llm"),
    "swap": ("job.replace_nodes", Safety.REVERSIBLE, "job llm rank 2"),
}


def planned(*ids: str, estimate: Estimate | None = None) -> Plan:
    steps = tuple(
        PlannedStep(name, name, uses, safety, {"out": ["n3"]}, (change,))
        for name in ids
        for uses, safety, subject in [STEPS[name]]
        for node in [subject if name == "reserve" else ""]
        for change in [Change(Sign.ALTER, subject, "changes", node)]
    )
    return Plan(
        "swap-and-resume", "", "V-1", {}, ("n3",), steps, (), Need.NONE, "stop", 7200.0,
        datetime(2026, 7, 5, tzinfo=UTC), "", estimate=estimate,
    )  # fmt: skip


def test_measured_runs_give_the_time_and_deadlines_bound_it() -> None:
    took = Took((20.0, 90.0, 300.0), same_job=True)
    estimate = Estimate(took, 7200.0, resumes=True, loss=LostSteps(260, 14.0, 294), standbys_left=1)
    assert estimate_lines(estimate) == [
        "time    about 1m30 until training goes on (3 earlier runs took 20.0 s to 5m00),"
        " at most 2h00",
        "lost    34 steps: it stands at step 294, the newest whole checkpoint is of step 260,"
        " 14.0 s old",
        "standby 1 free afterwards",
    ]


def test_one_step_is_no_steps() -> None:
    one = Estimate(None, 240.0, resumes=True, loss=LostSteps(293, 14.0, 294), standbys_left=1)
    assert estimate_lines(one)[1].startswith("lost    1 step: it stands")


def test_what_is_not_known_is_said_with_its_reason() -> None:
    estimate = Estimate(None, 240.0, resumes=True, loss="n1: no route", standbys_left="no answer")
    assert estimate_lines(estimate) == [
        "time    at most 4m00 until training goes on (its deadlines); not known how long:"
        " no run of it ended well yet",
        "lost    not known: n1: no route",
        "standby not known: no answer",
    ]
    assert estimate_document(estimate) == {
        "seconds": None, "earlier_runs": [], "at_most_seconds": 240.0, "checkpoint_step": None,
        "steps_lost": None, "standbys_left": None,
    }  # fmt: skip


def test_a_job_nobody_looked_at_loses_a_number_of_steps_that_is_not_known() -> None:
    estimate = Estimate(None, 60.0, resumes=True, loss=LostSteps(260, None, None))
    assert (
        "not known how many steps; the newest whole checkpoint is of step 260"
        in (estimate_lines(estimate)[1])
    )
    assert LostSteps(300, 1.0, 294).steps == 0, "a save at the end is ahead of the last report"


def test_what_starts_no_job_loses_nothing_and_says_nothing_of_it() -> None:
    other = Took((2.0,), same_job=False)
    assert estimate_lines(Estimate(other, 60.0, resumes=False)) == [
        "time    about 2.0 s until it is done (as the earlier run for other jobs), at most 1m00"
    ]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (("cordon",), ["brctl uncordon n3"]),
        (("cordon", "reserve"), ["brctl play rollback RUN"]),
        (
            ("cordon", "reserve", "stop", "swap"),
            [
                "until step `stop`: brctl play rollback RUN",
                "after it: brctl uncordon n3; brctl swap n9 --with n3 -m 'undo RUN'",
            ],
        ),
        (
            ("stop",),
            ["until step `stop`: brctl play rollback RUN", "after it nothing takes it back"],
        ),
        ((), []),
    ],
)
def test_a_plan_names_the_commands_that_would_take_it_back(
    ids: tuple[str, ...], expected: list[str]
) -> None:
    assert planned_way_back(planned(*ids)) == expected


async def test_only_nodes_are_named_to_be_swapped_back(tmp_path: Path) -> None:
    """The pool holds two: a remark on places is no node, and a shortfall leaves one unknown."""
    context = fake_context(tmp_path)
    labelled = {
        n: replace(each, labels={"rack": "a"}) for n, each in context.inventory.nodes.items()
    }
    run = JournalledRun(context, tmp_path, "R-0001")
    bound = replace(for_run(context, run), inventory=Inventory(labelled))

    async def last_line(out: list[Json]) -> str:
        wanted: dict[str, Json] = {"count": len(out), "job": "demo", "replacing": out}
        changes = tuple(await ACTIONS["standby.acquire"].plan(bound, wanted))
        reserve, stop, swap = planned("reserve", "stop", "swap").steps
        steps = (replace(reserve, changes=changes), stop, replace(swap, arguments={"out": out}))
        return planned_way_back(replace(planned(), steps=steps))[-1]

    back = "after it: brctl uncordon n3; brctl swap s1 --with n3 -m 'undo RUN'"
    assert await last_line(["n3"]) == back
    unknown = "after it: a swap back, of nodes that are known when it has run"
    assert await last_line(["n1", "n2", "n3"]) == unknown


def test_a_plan_without_an_estimate_still_says_its_bound_and_its_way_back() -> None:
    text = plan_page(planned("cordon"), {}).text
    assert text.endswith("time    at most 2h00\nundo    brctl uncordon n3")
