"""What the course of a job makes a watcher suspect, rule by rule."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.jobs.wrong_number import WrongKind, WrongNumber
from brctl.watch.job_rules import job_sightings
from brctl.watch.rules import RULES
from tests.fakes.watched_world import JOB

WINDOW_STEPS = 25


def window(number: int, step_s: float = 1.0, loss: float = 2.0, norm: float = 1.0) -> StepWindow:
    return StepWindow(WINDOW_STEPS * number, WINDOW_STEPS, step_s, 0.1, 0.05, loss, norm)


NO_PAST = StepHistory()
PAST = tuple(window(number) for number in range(1, 5))


def status(
    history: StepHistory = NO_PAST, told: Mapping[str, object] | None = None, **rank: object
) -> JobStatus:
    """Both ranks step along; what a test says is true of rank 1."""
    well = RankView(0, "n1", alive=True, step=200, phase="forward", loss_finite=True)
    views = (well, replace(well, rank=1, node="n2", **rank, **(told or {})))  # type: ignore[arg-type]
    return JobStatus(JOB, views, 200, 0.3, stalled=False, silent=(), history=history)


def rules(told: JobStatus, same_step_s: float = 0.0) -> dict[str, str]:
    return {s.rule: s.text for s in job_sightings(told, same_step_s, look=1)}


def recent(**values: float) -> StepHistory:
    newest = window(5, **values)
    return StepHistory(PAST, newest, newest)


@pytest.mark.parametrize(("step_s", "suspected"), [(1.0, False), (1.15, False), (1.25, True)])
def test_a_step_rate_that_falls_by_a_fifth_is_suspected(step_s: float, *, suspected: bool) -> None:
    """Against the job's own windows of 25 steps before."""
    assert ("slower" in rules(status(recent(step_s=step_s)))) is suspected


@pytest.mark.parametrize(("now_s", "suspected"), [(1.2, False), (3.0, True)])
def test_steps_of_which_some_became_far_longer_are_suspected(
    now_s: float, *, suspected: bool
) -> None:
    """The usual step is as quick as ever, and the average is not."""
    even = [replace(window(n), mean_s=1.0, trimmed_mean_s=1.0) for n in range(1, 5)]
    since = [replace(window(n), mean_s=now_s, trimmed_mean_s=now_s) for n in (5, 6)]
    history = StepHistory((*even, since[0]), since[1], since[1])
    told = rules(status(history))
    assert ("slower" in told) is suspected
    assert not suspected or "average 3 s; before, 1 s" in told["slower"]


def test_slower_steps_are_confirmed_by_five_looks_and_then_diagnosed() -> None:
    assert (RULES["slower"].looks, RULES["slower"].diagnosed) == (5, True)


@pytest.mark.parametrize(
    ("values", "text"),
    [({"loss": 10.0}, "the loss is 10, 5 times"), ({"norm": 5.5}, "the gradient norm is 5.5")],
)
def test_five_times_the_usual_loss_or_norm_is_told_and_nobody_is_diagnosed(
    values: dict[str, float], text: str
) -> None:
    assert rules(status(recent(**values)))["jump"].startswith(text)
    assert not RULES["jump"].diagnosed
    assert "jump" not in rules(status(recent(loss=9.0, norm=4.5)))


@pytest.mark.parametrize(
    "rank",
    [
        {"loss_finite": False, "first_nonfinite_step": 95},
        {"grad_finite": False, "first_nonfinite_grad_step": 95},
    ],
)
def test_a_loss_or_gradient_that_is_no_number_is_suspected_at_once(rank: dict[str, object]) -> None:
    assert rules(status(told=rank)) == {"not-a-number": "no number on 1 ranks since step 95"}
    assert RULES["not-a-number"].looks == 1
    assert not RULES["not-a-number"].accuses


def test_what_a_ranks_own_checks_found_is_suspected_at_once() -> None:
    """A job whose numbers are wrong goes on stepping, with a loss that looks right."""
    product = WrongNumber(WrongKind.PRODUCT, 95, place="layers.0")
    text = "a matrix product of rank 1 is wrong in step 95 (layer layers.0), seen 1 times"
    assert rules(status(wrong_numbers=(product,))) == {"wrong-numbers": text}
    assert RULES["wrong-numbers"].looks == 1


@pytest.mark.parametrize(
    ("phase", "longest_s", "suspected"),
    [("forward", None, True), ("evaluation", None, False), ("load_data", 60.0, False),
     ("load_data", 20.0, True)],
)  # fmt: skip
def test_a_stall_has_the_limit_of_its_phase(
    phase: str, longest_s: float | None, *, suspected: bool
) -> None:
    """An evaluation may take its time; another phase twice its longest ever."""
    told = replace(
        status(phase=phase, phase_age_s=90.0, phase_longest_s=longest_s), stalled=True,
        progress_age_s=90.0,
    )  # fmt: skip
    assert ("no-step" in rules(told, same_step_s=90.0)) is suspected


def test_a_rank_that_ended_with_an_error_is_no_stall_as_well() -> None:
    told = replace(status(alive=False, exit_status=9), stalled=True, progress_age_s=900.0)
    assert rules(told, same_step_s=900.0) == {"rank-ended": "rank 1 on n2 ended with 9"}
