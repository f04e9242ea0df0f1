"""A job is compared with its own past: what it did before is the only yardstick it always has."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.history import jumps, slow_down
from brctl.evidence.job.numbers import bad_number
from brctl.model.evidence import Evidence, Weight
from brctl.model.evidence_kinds import SLOW_LOADER
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import DecisionContext, decide

JOB = example_job()
NOW = datetime(2026, 11, 22, 21, 0, tzinfo=UTC)


def window(first: int, step_s: float, **more: float) -> StepWindow:
    return replace(StepWindow(first, 25, step_s), **more)  # type: ignore[arg-type]  # by name


def past(*step_s: float, recent: float, **more: float) -> StepHistory:
    windows = tuple(window(25 * i + 4, seconds) for i, seconds in enumerate(step_s))
    return StepHistory(windows, window(900, recent, **more), window(948, recent, **more))


def status(history: StepHistory, **waits: float) -> JobStatus:
    """A job that advances; `r3=0.1` is what rank 3 waits, the others wait for nothing else."""
    views = tuple(
        RankView(
            rank, JOB.node_of(rank), alive=True, step=950, phase="forward", progress_age_s=0.1,
            wait_s=waits.get(f"r{rank}", waits.get("others")), recent_steps=20,
            step_s=history.recent.step_s if history.recent else None,
        )
        for rank in range(8)
    )  # fmt: skip
    return JobStatus(JOB, views, 950, 0.1, stalled=False, silent=(), history=history)


def found(history: StepHistory, **waits: float) -> tuple[Evidence, ...]:
    return assess_job(status(history, **waits), ())


@pytest.mark.parametrize(
    ("before", "now"), [(0.38, 0.90), (0.10, 0.66), (10.0, 13.0), (0.4, 0.52), (31.0, 38.0)]
)
def test_steps_slower_than_the_jobs_own_hint_at_the_job_and_at_no_node(
    before: float, now: float
) -> None:
    history = past(before, before * 1.02, before * 0.99, recent=now)
    (item,) = found(history, others=0.02 * now)
    assert (item.kind, item.subject.node) == ("job.steps.slower", "")
    assert (item.fault, item.weight) == (FaultClass.STRAGGLER_SLOW, Weight.HINTS)


@pytest.mark.parametrize(("steps", "weight"), [(4, Weight.HINTS), (20, Weight.CONVICTS)])
def test_batches_of_few_steps_since_a_start_convict_no_loader(steps: int, weight: Weight) -> None:
    """Caches and queues still fill: a job warming up after a restart had a bad loader at 0.94."""
    windows = tuple(window(25 * n, 1.0, load_s=0.02) for n in range(3))
    at = status(StepHistory(windows, window(900, 2.5, load_s=1.6), window(948, 2.5)))
    loads = tuple(replace(v, load_s=1.5, recent_steps=steps) for v in at.ranks)
    (item,) = assess_job(replace(at, ranks=loads), ())
    assert (item.fault, item.weight) == (FaultClass.DATA_LOADER, weight)


def test_a_change_long_ago_that_lasts_is_still_a_change() -> None:
    """Most of the windows are slow by now; a median over all of them would call that usual."""
    change = slow_down(past(0.2, 0.21, 0.2, 0.5, 0.5, 0.52, 0.5, 0.51, recent=0.5))
    assert change is not None
    assert change.since == 79
    assert (change.before_s, change.now_s) == (0.2, 0.5)


@pytest.mark.parametrize(
    "history",
    [
        past(0.4, 0.41, 0.39, recent=0.42),
        past(0.4, 0.9, 0.4, 0.85, 0.41, recent=0.8),
        past(0.4, recent=0.9),
        past(recent=0.9),
        past(0.9, 0.9, recent=0.4),
        past(0.4, 0.9, 0.9, 0.4, recent=0.4),
        StepHistory(),
    ],
    ids=["even", "restless", "one window", "young", "faster", "over", "no file"],
)
def test_what_is_no_lasting_change_is_not_called_one(history: StepHistory) -> None:
    assert slow_down(history) is None
    assert found(history, others=0.01) == ()


def test_a_loader_that_slows_every_rank_is_called_by_its_name() -> None:
    """Nobody waits for anybody: rank 0 spends the longer step waiting for its batch."""
    windows = tuple(window(4 + 25 * i, 0.4, load_s=0.01, wait_s=0.05) for i in range(4))
    slow = window(900, 1.1, load_s=0.7, wait_s=0.05)
    (item,) = found(StepHistory(windows, slow, slow), others=0.05)
    assert (item.fault, item.subject.node) == (FaultClass.DATA_LOADER, "")
    assert "batch" in item.text


def test_where_every_rank_says_so_the_loaders_are_what_slows_the_job() -> None:
    """The newest steps of all ranks bear out what the past of rank 0 says."""
    windows = tuple(window(4 + 25 * i, 0.4, load_s=0.01, wait_s=0.05) for i in range(4))
    slow = window(900, 1.1, load_s=0.7, wait_s=0.05)
    job = status(StepHistory(windows, slow, slow), others=0.05)
    loading = tuple(replace(view, load_s=0.68) for view in job.ranks)
    (item,) = assess_job(replace(job, ranks=loading), ())
    assert (item.fault, item.subject.node) == (FaultClass.DATA_LOADER, "")
    assert (item.kind, item.weight) == (SLOW_LOADER, Weight.CONVICTS)
    one_is_quick = (replace(loading[0], load_s=0.01), *loading[1:])
    (item,) = assess_job(replace(job, ranks=one_is_quick), ())
    assert item.weight is Weight.HINTS


@pytest.mark.parametrize(("rank", "step"), [(3, 0.4), (0, 12.0), (6, 0.52)])
def test_a_rank_a_third_slower_is_named_once_the_job_was_faster(rank: int, step: float) -> None:
    """1.3 times slow: the others wait for a quarter of the step, far below half a second."""
    history = past(step, step, step, recent=1.3 * step)
    items = found(history, others=0.35 * step, **{f"r{rank}": 0.05 * step})
    named = {e.subject.node for e in items if e.weight is Weight.CONVICTS}
    assert named == {JOB.node_of(rank)}


def test_two_stragglers_are_both_named() -> None:
    history = past(1.0, 1.0, 1.0, recent=2.2)
    items = found(history, others=1.3, r2=0.05, r5=0.3)
    assert {e.subject.node for e in items if e.weight is Weight.CONVICTS} == {"n3", "n6"}


def test_half_of_the_ranks_are_named_only_when_the_job_was_faster() -> None:
    slow = {f"r{rank}": 0.05 for rank in range(4)}
    sure = found(past(1.0, 1.0, recent=2.0), others=1.0, **slow)
    unsure = found(past(recent=2.0), others=1.0, **slow)
    assert len([e for e in sure if e.weight is Weight.CONVICTS]) == 4
    assert {e.weight for e in unsure} == {Weight.HINTS}


def test_waits_that_were_always_uneven_convict_nobody() -> None:
    """Stages of a pipeline wait differently for ever, and nothing broke."""
    items = found(past(2.0, 2.0, 2.0, 2.0, recent=2.0), others=1.2, r1=0.1, r4=0.1)
    assert {e.weight for e in items} == {Weight.HINTS}


def test_a_slow_network_that_makes_all_wait_names_nobody() -> None:
    items = found(past(0.10, 0.11, 0.10, recent=0.66), others=0.55, r2=0.5, r5=0.52)
    assert {e.subject.node for e in items} == {""}


def test_rank_zeros_own_past_speaks_for_it() -> None:
    """It waits longer than before, so the rank they all wait for is another one."""
    windows = tuple(window(4 + 25 * i, 0.4, wait_s=0.05) for i in range(4))
    slow = window(900, 0.9, wait_s=0.55)
    items = found(StepHistory(windows, slow, slow), others=0.55, r0=0.02)
    assert [e for e in items if e.weight is Weight.CONVICTS] == []


def test_small_unrest_of_quick_steps_is_no_straggler() -> None:
    """40 ms of a step of 100 ms is what the scheduler of a busy host makes of it."""
    assert found(past(0.1, 0.1, 0.1, recent=0.1), others=0.04, r3=0.001) == ()


@pytest.mark.parametrize("name", ["loss", "grad_norm"])
@pytest.mark.parametrize("times", [5.5, 40.0])
def test_numbers_far_above_their_own_past_are_told_of(name: str, times: float) -> None:
    windows = tuple(window(4 + 25 * i, 0.4, **{name: 2.0 - 0.1 * i}) for i in range(5))
    newest = window(900, 0.4, **{name: 1.8 * times})
    (item,) = found(StepHistory(windows, window(880, 0.4), newest), others=0.01)
    assert (item.fault, item.subject.node) == (FaultClass.NUMERIC_NAN, "")
    assert item.weight is Weight.HINTS
    assert "since step 129..924" in item.text
    assert bad_number([item]).step == 129


def test_where_a_rank_followed_its_loss_the_step_of_the_jump_is_known_exactly() -> None:
    """The update before it may be what was wrong; without that a range of windows is told."""
    windows = tuple(window(4 + 25 * i, 0.4, loss=2.0) for i in range(5))
    job = status(StepHistory(windows, window(880, 0.4), window(900, 0.4, loss=90.0)))
    told = tuple(replace(view, loss_off_since=228 + view.rank % 2) for view in job.ranks)
    (item,) = jumps(replace(job, ranks=told))
    assert (bad_number([item]).step, bad_number([item]).by_step) == (227, 228)


def test_a_loss_that_jumps_where_all_replicas_are_equal_is_a_verdict_without_a_node() -> None:
    """A search follows, which lets other machines compute those steps; nobody is accused."""
    windows = tuple(window(4 + 25 * i, 0.4, loss=2.0) for i in range(5))
    newest = window(900, 0.4, loss=90.0)
    ranks = tuple(
        RankView(rank, JOB.node_of(rank), alive=True, step=950, compared_tensors=12)
        for rank in range(8)
    )
    history = StepHistory(windows, window(880, 0.4), newest)
    items = tuple(jumps(JobStatus(JOB, ranks, 950, 0.1, stalled=False, silent=(), history=history)))
    (verdict,) = decide(items, (), DecisionContext(NOW, JOB.name, 950, stalled=False))
    assert (verdict.fault, verdict.nodes) == (FaultClass.NUMERIC_NAN, ())
    assert recommend(verdict).playbook == "locate-corruption"


@pytest.mark.parametrize("values", [(4.0, 3.0, 2.0, 2.5), (-1.0, -1.1, -1.2, 8.0)])
def test_a_loss_that_falls_or_is_negative_is_no_jump(values: tuple[float, ...]) -> None:
    windows = tuple(window(4 + 25 * i, 0.4, loss=loss) for i, loss in enumerate(values[:-1]))
    newest = window(900, 0.4, loss=values[-1])
    assert found(StepHistory(windows, newest, newest), others=0.01) == ()


@pytest.mark.parametrize(("wait_s", "named"), [(0.15, {"job.rank.waits-least"}), (0.05, set())])
def test_a_faint_straggler_of_a_job_without_a_past_is_a_hint(
    wait_s: float, named: set[str]
) -> None:
    """A tenth of every step that one node costs all others; nobody saw whether it ever did not."""
    items = found(past(recent=1.0), others=wait_s, r3=0.0)
    assert {item.kind for item in items} == named
    assert {item.weight for item in items} <= {Weight.HINTS}


def test_a_loss_that_became_zero_learns_nothing() -> None:
    """All labels masked, say: the steps go on as ever, and nothing is called healthy."""
    usual = tuple(window(25 * i + 4, 0.4, loss=2.3) for i in range(3))
    masked = StepHistory(usual, window(900, 0.4, loss=0.0), window(948, 0.4, loss=0.0))
    assert [(e.kind, e.subject.node) for e in found(masked)] == [("job.steps.loss", "")]
    always = StepHistory(
        tuple(window(25 * i + 4, 0.4, loss=0.0) for i in range(3)), masked.recent, masked.last
    )
    assert not found(always)
