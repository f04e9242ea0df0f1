"""What the verb asks for, and whom it names."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brctl.actions.contract import ActionFailed
from brctl.actions.corruption_locate import CorruptionLocate
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.corruption import CorruptionOrder, CorruptionSearch
from tests.fakes.run_context import FakeSearch, FakeVerdicts, example_verdict, fake_context


@dataclass
class Recorded(FakeSearch):
    """Keeps what it was asked; see `Search`."""

    order: CorruptionOrder | None = None

    async def locate_corruption(
        self, job: Job, order: CorruptionOrder, tell: Callable[[str], None]
    ) -> CorruptionSearch:
        self.order = order
        return await super().locate_corruption(job, order, tell)


async def test_only_nodes_that_computed_wrongly_are_to_be_taken_out_of_the_job(
    tmp_path: Path,
) -> None:
    """A silent node is none of them, and a wrong reference is named apart."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data["sick"], data["dead"] = ["n3", "s1"], ["n2"]
    found = await CorruptionLocate().apply(context, {"job": "demo", "references": "@golden"})
    assert (found.out["suspects"], found.out["wrong_references"]) == (["n3"], ["s1"])
    assert "n2 says nothing of itself (no answer)" in found.say


async def test_the_plan_says_how_often_before_anything_begins(tmp_path: Path) -> None:
    """66 times for a tenth of the calls at a thousandth."""
    first, second = await CorruptionLocate().plan(fake_context(tmp_path), {"job": "demo"})
    assert "66 exact products" in first.what
    assert "2 phases of 2 groups x 2 nodes" in second.what


async def test_a_replay_is_told_where_numbers_went_wrong(tmp_path: Path) -> None:
    """The step to pass and the rank whose data to read come from the verdict's own evidence."""
    text = "the local loss of rank 5 is not finite since step 812; 8 of 8 ranks have none now"
    item = Evidence(
        "job.rank.loss", Subject("n3", "rank:5"), Weight.CONVICTS, FaultClass.NUMERIC_NAN,
        Role.ROOT, "job.ranks", text, "",
    )  # fmt: skip
    context = fake_context(tmp_path)
    verdicts = FakeVerdicts(context.world, replace(example_verdict(), evidence=(item,)))
    search = Recorded(context.world, context.clock)  # type: ignore[arg-type]  # the fake's own clock
    told: Arguments = {
        "job": "demo",
        "verdict": "V-1",
        "checkpoint": "/ckpt/step-800",
        "one_in": 100,
    }
    await CorruptionLocate().apply(replace(context, verdicts=verdicts, search=search), told)
    assert search.order is not None
    assert search.order.repetitions == 688
    assert search.order.variables == {
        "BRCTL_RESUME_FROM": "/ckpt/step-800",
        "BRCTL_REPLAY_UNTIL": "814",
        "BRCTL_REPLAY_RANK": "5",
    }


@pytest.mark.parametrize(("begins_at", "is_left"), [(811, True), (812, False), (840, False)])
async def test_a_step_before_every_checkpoint_is_not_replayed_and_it_is_said_at_once(
    tmp_path: Path, begins_at: int, is_left: bool
) -> None:
    """Replays of later steps go on; they tell a machine, not what made the jump."""
    text = "the loss is 90, 40 times what it was before (2.2), since step 812..815"
    item = Evidence(
        "job.steps.loss", Subject(""), Weight.CONVICTS, FaultClass.NUMERIC_NAN, Role.ROOT,
        "job.ranks", text, "",
    )  # fmt: skip
    context = fake_context(tmp_path)
    verdicts = FakeVerdicts(context.world, replace(example_verdict(), evidence=(item,)))
    search = Recorded(context.world, context.clock)  # type: ignore[arg-type]  # the fake's own clock
    told: Arguments = {"job": "demo", "verdict": "V-1", "checkpoint": "/c", "begins_at": begins_at}
    found = await CorruptionLocate().apply(replace(context, verdicts=verdicts, search=search), told)
    assert search.order is not None
    assert search.order.replay_first is is_left
    assert ("BRCTL_REPLAY_UNTIL" in search.order.variables) is is_left
    assert ("step 812 is not computed again: no checkpoint from before it" in found.say) != is_left


async def test_a_miss_that_no_number_of_repetitions_reaches_is_refused(tmp_path: Path) -> None:
    """One of one may be missed: nothing would be asked at all."""
    with pytest.raises(ActionFailed, match="no number of repetitions"):
        await CorruptionLocate().apply(fake_context(tmp_path), {"job": "demo", "missed_in": 1})
