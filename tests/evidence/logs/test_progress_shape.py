"""Steps in words that no row knows are steps; trials, clocks and bad numbers are none."""

import pytest

from brctl.evidence.logs.progress.shape import progress_shape

STEPS = {
    "a bar of one's own": "episode batch {n} done (28.7s) reward {x}",
    "a table": "| epoch 2 | {n}/ 1490 batches | lr 3e-05 | loss {x} |",
    "a counter among others": "W=4 gpu_util=97 iteration={n} tokens/s={x}",
    "thousands with commas": "trained on 12,{n} samples, loss={x}",
}
NO_STEPS = {
    "trials": "attempt {n} of 900 for this batch, loss server at {x}",
    "failures that are counted": "step failed {n} times, loss {x}",
    "a clock": "2026-11-22 03:0{d}:11 loss {x}",
    "uptime": "[  {n}.123456] step",
    "no word of training": "packets received {n} of {x}",
    "a loss that is no number": "step {n} loss nan lr {x}",
    "skipped steps": "step {n} skipped, loss scale {x}",
}


def log(template: str, numbers: tuple[int, ...] = (107, 108, 109, 110)) -> dict[int, str]:
    texts = [template.format(n=n, d=n % 10, x=f"0.{n * 37 % 100:02}") for n in numbers]
    return dict(enumerate(texts, start=1))


@pytest.mark.parametrize("template", STEPS.values(), ids=STEPS)
def test_a_line_that_comes_back_with_a_higher_counter_is_progress(template: str) -> None:
    """The proof stands where the last three rows begin."""
    event = progress_shape(log(template), "a.log")
    assert event is not None
    assert (event.source, event.line, event.signature.name) == ("a.log", 2, "progress.shape")


@pytest.mark.parametrize("template", NO_STEPS.values(), ids=NO_STEPS)
def test_what_only_looks_like_progress_proves_nothing(template: str) -> None:
    assert progress_shape(log(template), "a.log") is None


@pytest.mark.parametrize("numbers", [(4, 5), (4, 5, 5, 5), (9, 8, 7, 6), (1, 2, 3, 1)])
def test_a_counter_that_stands_falls_or_is_seen_twice_proves_nothing(
    numbers: tuple[int, ...],
) -> None:
    """Three rows are needed, and the newest ones have to climb."""
    assert progress_shape(log("step {n} loss {x}", numbers), "a.log") is None
