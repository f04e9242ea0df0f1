"""A job that halved its pace proves no health by going on; one whose steps differ is no slower."""

import random
from collections.abc import Callable, Sequence

import pytest

from brctl.engine.logs.classify import Blocks, Classifier
from brctl.evidence.logs.progress.slower import slower_steps
from brctl.model.fault import FaultClass

EVEN = [2.01, 2.04, 1.98, 2.0, 2.02, 1.99]
TWICE = [4.3, 4.4, 4.35, 4.41]


def bar(step: int, pace: str) -> str:
    return f" {step:2d}%|{'█' * (step // 4)}{' ' * 8}| {step}/100 [01:{step:02d}<03:40, {pace}]"


FORMS: dict[str, Callable[[int, float], str]] = {
    "seconds": lambda n, s: f"step: {n} loss: 2.{n} step_time: {s}s",
    "milliseconds": lambda n, s: f"iter {n}: loss 2.{n}, time {1000 * s:.2f}ms, mfu 40.1%",
    "per iteration": lambda n, s: (
        f" iteration {n}/ 900 | elapsed time per iteration (ms): {1000 * s:.1f} | lm loss: 2.{n} |"
    ),
    "per iteration, with counters": lambda n, s: (
        f" iteration {n}/ 900 | elapsed time per iteration (ms): {1000 * s:.1f} | lm loss: 2.{n} |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |"
    ),
    "a sentence": lambda n, s: f"2026-11-21 05:54:{n},834: Iteration took {s} s.",
    "a rate": lambda n, s: f"step: {n} loss: 2.{n} memory: 20.1GiB tps: {int(68000 / s):,}",
    "json": lambda n, s: f'{{"step": {n}, "loss": 2.{n}, "samples_per_second": {512 / s:.1f}}}',
    "a bar whose unit turns": lambda n, s: bar(n, f"{s}s/it" if s > 3 else f"{1 / s:.2f}it/s"),
}


def lines_of(form: Callable[[int, float], str], times: Sequence[float]) -> dict[int, str]:
    return {n: form(n + 10, s) for n, s in enumerate(times, 1)}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_steps_that_take_twice_as_long_are_told_with_the_line_since_when(
    form: Callable[[int, float], str],
) -> None:
    """Whatever the program prints: a time, a rate, or a bar that changes its unit."""
    event = slower_steps(lines_of(form, EVEN + TWICE), "a.log")
    assert event is not None
    assert event.text.startswith("steps take 2.2 times as long since line 7: ")
    assert (event.line, event.count) == (10, 4)
    assert slower_steps(lines_of(form, EVEN + EVEN), "a.log") is None


@pytest.mark.parametrize(
    "times",
    [
        [*EVEN, 9.0, *EVEN],
        [*EVEN, *TWICE, *EVEN],
        [*EVEN, *TWICE * 8, *EVEN],
        [*TWICE, *EVEN],
        [*EVEN, 4.3, 4.4],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0],
        [*EVEN, *(1.2 * s for s in EVEN)],
        [0.0] * 8,
    ],
    ids=[
        "one save",
        "over",
        "long over",
        "warm-up",
        "two steps",
        "a clock",
        "a rounded clock",
        "a fifth longer",
        "no time",
    ],
)
def test_what_is_over_too_short_or_no_pace_at_all_is_not_told(times: list[float]) -> None:
    assert slower_steps(lines_of(FORMS["seconds"], times), "a.log") is None


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        ("step {} seq_len 1024 step time 0.5s", "step {} seq_len 2048 step time 1.1s"),
        ("iter {} batch_size 8 time 0.5s", "iter {} batch_size 32 time 1.9s"),
        ("step {} data time 0.01 time 1.1", "step {} data time 0.90 time 1.2"),
        ("eval batch {} took 0.5 s", "eval batch {} took 1.5 s"),
        ("epoch {} took 1 min 50 s", "epoch {} took 2 min 1 s"),
        (
            "{} Avg prompt throughput: 900.1 tokens/s, Running: 8 reqs",
            "{} Avg prompt throughput: 0.4 tokens/s, Running: 0 reqs",
        ),
    ],
    ids=["longer sequences", "larger batches", "a part", "evaluation", "minutes", "no demand"],
)
def test_more_work_another_activity_or_unit_is_no_slow_step(fast: str, slow: str) -> None:
    rows = [fast.format(n) for n in range(6)] + [slow.format(n) for n in range(6, 12)]
    assert slower_steps(dict(enumerate(rows, 1)), "a.log") is None


def test_batches_of_any_length_seldom_look_slower() -> None:
    """Steps of log-normal length that did not change: at most one job of twenty is accused."""
    rng = random.Random(7)
    told = sum(
        slower_steps(
            lines_of(
                FORMS["seconds"],
                [round(rng.lognormvariate(0, 0.6), 3) for _ in range(rng.choice([6, 12, 30, 100]))],
            ),
            "a.log",
        )
        is not None
        for _ in range(200)
    )
    assert told <= 10


def test_a_job_that_became_slower_is_not_called_sound() -> None:
    """Its steps go on, which alone would prove it well; the line since when is in view."""
    text = "\n".join(lines_of(FORMS["seconds"], EVEN + TWICE).values()).encode()
    said = Classifier().classify_inputs([("a.log", Blocks([text]))]).overall
    assert said.fault is FaultClass.STRAGGLER_SLOW
    assert "since line 7" in said.evidence[0].text
    ended = (
        Classifier().classify_inputs([("a.log", Blocks([text, b"\ntraining finished"]))]).overall
    )
    assert ended.fault is FaultClass.STRAGGLER_SLOW
    even = "\n".join(lines_of(FORMS["seconds"], EVEN + EVEN).values()).encode()
    said = Classifier().classify_inputs([("a.log", Blocks([even]))]).overall
    assert said.fault is FaultClass.NO_FAULT
