"""A repair is proved by passing the step at which training had stopped, not by steps before it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from brctl.actions.contract import ActionFailed, ActionResult
from brctl.actions.job.wait_progress import JobWaitProgress
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.jobs.wrong_number import WrongKind, WrongNumber
from brctl.model.runs.playbook import Arguments
from tests.fakes.run_context import FakeJobs, fake_context

NOT_FINITE = RankView(0, "n1", loss_finite=False)
OFF = RankView(0, "n1", loss_finite=True, loss_off_since=44)
DIFFERS = WrongNumber(WrongKind.REPLICA, 40, "weight", 1, "dp", (0,), 8, has_majority=True)


@dataclass
class ScriptedJobs(FakeJobs):
    """A job that shows these steps, one a look, and stays at the last or falls there."""

    steps: Sequence[int] = ()
    falls: bool = False
    wrong_in: range = range(0)
    wrong: RankView = NOT_FINITE
    looks: list[int] = field(default_factory=list)

    async def progress(self, job: Job) -> JobStatus:
        step = self.steps[min(len(self.looks), len(self.steps) - 1)]
        fell = self.falls and len(self.looks) >= len(self.steps)
        self.looks.append(step)
        shown = self.wrong if step in self.wrong_in else RankView(0, "n1")
        rank = replace(shown, alive=not fell, step=step, exit_status=1 if fell else None)
        return JobStatus(job, (rank,), step, None, None, ())


def waited(
    folder: Path,
    steps: Sequence[int],
    *,
    falls: bool = False,
    wrong_in: range = range(0),
    wrong: RankView = NOT_FINITE,
    **args: object,
) -> ActionResult:
    """What waiting says over these steps, from a checkpoint of step 38."""
    context = fake_context(folder)
    jobs = ScriptedJobs(
        context.world, context.state_dir, steps=steps, falls=falls, wrong_in=wrong_in, wrong=wrong
    )
    arguments: Arguments = {"job": "demo", "steps": 5, "beyond": 38, "within": "30s", **args}  # type: ignore[dict-item]  # plain values
    return asyncio.run(JobWaitProgress().apply(replace(context, jobs=jobs), arguments))


def test_steps_before_the_one_it_stopped_at_prove_nothing(tmp_path: Path) -> None:
    """A job that falls at step 50 each time takes eleven steps from its checkpoint, each time."""
    with pytest.raises(ActionFailed, match="rank 0 on n1 ended with 1"):
        waited(tmp_path, range(38, 50), falls=True, stopped_at=[49, 0], at_most="1h")


def test_five_steps_beyond_the_one_it_stopped_at_are_proof(tmp_path: Path) -> None:
    done = waited(tmp_path, range(38, 60), stopped_at=[None, 49], at_most="1h")
    assert (done.out["step"], done.say) == (54, "step 38 to 54; it had stopped at step 49")


def test_where_nobody_knows_the_step_more_are_asked_for_and_it_is_said(tmp_path: Path) -> None:
    """Neither the run nor the verdict could read how far it came."""
    done = waited(tmp_path, range(38, 80), stopped_at=[None, 0], at_most="1h")
    assert done.out["step"] == 38 + 4 * 5
    assert "at which step it had stopped is not known" in done.say


def test_a_playbook_that_does_not_ask_is_served_as_before(tmp_path: Path) -> None:
    assert waited(tmp_path, range(38, 80)).say == "step 38 to 43"


def test_a_long_way_to_the_step_is_no_stall(tmp_path: Path) -> None:
    """`within` is the wait for the next step; progress files of before do not count as one."""
    done = waited(tmp_path, [49, *range(38, 120)], stopped_at=[100], at_most="1h")
    assert done.out["step"] == 105
    with pytest.raises(ActionFailed, match="step 60 after 30 s; it had stopped at step 100"):
        waited(tmp_path, range(38, 61), stopped_at=[100], at_most="1h")


def test_training_that_has_not_come_so_far_is_not_called_repaired(tmp_path: Path) -> None:
    with pytest.raises(ActionFailed, match=r"going on after 20\.0 s, which proves nothing yet"):
        waited(tmp_path, range(38, 1000), stopped_at=[500], at_most="20s")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (NOT_FINITE, "step 60, and the loss of 1 of 1 ranks is not finite"),
        (
            RankView(0, "n1", loss_finite=True, wrong_numbers=(DIFFERS,)),
            "step 60, and 1 of 1 ranks find wrong numbers, rank 0 on n1 since step 40",
        ),
    ],
)
def test_steps_with_wrong_numbers_are_no_proof_that_training_is_right(
    tmp_path: Path, wrong: RankView, told: str
) -> None:
    """The job goes on with NaN, or with what its own ranks call wrong, for as long as one looks."""
    with pytest.raises(ActionFailed, match=told):
        waited(
            tmp_path, range(38, 90), stopped_at=[50], at_most="1h",
            wrong_in=range(40, 90), wrong=wrong,
        )  # fmt: skip


def test_one_step_without_a_number_is_waited_out(tmp_path: Path) -> None:
    """A loss scaler skips such a step; what files of before said counts for nothing."""
    bad = range(54, 56)
    done = waited(tmp_path, range(38, 90), stopped_at=[49], at_most="1h", wrong_in=bad)
    assert done.out["step"] == 56
    old = waited(tmp_path, [49, *range(38, 90)], stopped_at=[49], wrong_in=range(49, 50))
    assert old.out["step"] == 54


@dataclass
class JumpingJobs(ScriptedJobs):
    """The loss of its newest steps is this many times what it was, from step 52 on."""

    times: float = 1.0

    async def progress(self, job: Job) -> JobStatus:
        status = await super().progress(job)
        past = tuple(StepWindow(25 * i, 25, 0.4, loss=2.2) for i in range(4))
        loss = 2.2 * self.times if (status.step or 0) >= 52 else 2.2
        return replace(status, history=StepHistory(past, None, StepWindow(52, 3, 0.4, loss=loss)))


@pytest.mark.parametrize("times", [1.3, 18.0])
def test_a_loss_that_jumps_again_is_no_proof(tmp_path: Path, times: float) -> None:
    """Finite, step by step, and five times its past or more: the rule by which `dx` found it."""
    context = fake_context(tmp_path)
    jobs = JumpingJobs(context.world, context.state_dir, steps=range(38, 90), times=times)
    arguments: Arguments = {"job": "demo", "steps": 5, "stopped_at": [50], "at_most": "1h"}
    run = JobWaitProgress().apply(replace(context, jobs=jobs), arguments)
    if times < 5:
        assert asyncio.run(run).out["step"] == 55
        return
    with pytest.raises(ActionFailed, match=r"step 60, and the loss is 39\.6, 18 times"):
        asyncio.run(run)


@dataclass
class JumpedBeforeJobs(ScriptedJobs):
    """At the first look its files are those of the attempt that was stopped."""

    async def progress(self, job: Job) -> JobStatus:
        status = await super().progress(job)
        return replace(status, ranks=(OFF,)) if len(self.looks) == 1 else status


def test_a_jump_of_this_attempt_is_remembered_and_one_of_before_is_not(tmp_path: Path) -> None:
    """A small model comes down from a bent step before it has passed the one it stopped at."""
    with pytest.raises(ActionFailed, match="step 54, and the loss jumped again at step 44"):
        waited(tmp_path, range(38, 90), stopped_at=[49], wrong_in=range(44, 48), wrong=OFF)
    context = fake_context(tmp_path)
    jobs = JumpedBeforeJobs(context.world, context.state_dir, steps=[49, *range(38, 90)])
    arguments: Arguments = {"job": "demo", "steps": 5, "stopped_at": [49]}
    done = asyncio.run(JobWaitProgress().apply(replace(context, jobs=jobs), arguments))
    assert done.out["step"] == 54


@dataclass
class HangingJobs(FakeJobs):
    """A job that was started again, takes two steps and hangs; its files of before are old."""

    old_s: float = 90.0
    looks: int = 0

    async def progress(self, job: Job) -> JobStatus:
        self.looks += 1
        step, age_s = (49, self.old_s + self.looks) if self.looks < 4 else (39, self.looks - 4.0)
        rank = RankView(0, "n1", alive=True, step=step)
        return JobStatus(job, (rank,), step, age_s, age_s > 15.0, ())


@pytest.mark.parametrize(("verdict", "same"), [("V-1", True), ("V-1", False), ("", True)])
def test_a_job_that_hangs_as_before_is_not_waited_for_until_it_gives_up(
    tmp_path: Path, verdict: str, same: bool
) -> None:
    """Only where a look finds the verdict's fault again, and never for what was written before."""
    context = fake_context(tmp_path)
    with context.world.change() as world:
        world["still_true"] = same
    jobs = HangingJobs(context.world, context.state_dir)
    arguments: Arguments = {
        "job": "demo",
        "within": "5m",
        "at_most": "1h",
        "stopped_at": [49],
        "verdict": verdict,
    }
    told = "no progress for 16.0 s at step 39, and .* is found again"
    with pytest.raises(ActionFailed, match=told if same and verdict else "after 300 s"):
        asyncio.run(JobWaitProgress().apply(replace(context, jobs=jobs), arguments))
