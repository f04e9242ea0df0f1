"""NaN and jumps by the paper's rule."""

import math
from collections.abc import Iterable

import pytest

from brctl.evidence.numeric import NumericTrouble, NumericWatch, ProgressRow, parse_progress


def first_trouble(rows: Iterable[ProgressRow]) -> NumericTrouble | None:
    return next(filter(None, map(NumericWatch().see, rows)), None)


def rows(*losses: float, start: int = 1000) -> list[ProgressRow]:
    return [ProgressRow(start + i, loss) for i, loss in enumerate(losses)]


def test_nan_is_trouble_at_once() -> None:
    """A loss that is not a number needs no history."""
    found = first_trouble(rows(2.0, math.nan, 2.0))
    assert found is not None
    assert (found.kind, found.row.step) == ("nan", 1001)


def test_five_times_the_median_is_a_jump() -> None:
    """ByteRobust's 5x rule, against the median of recent rows."""
    found = first_trouble(rows(*[0.5] * 20, 2.9))
    assert found is not None
    assert found.kind == "loss-jump"


def test_a_language_models_loss_need_not_rise_five_times() -> None:
    """From three nats to eight is divergence, though less than 5x."""
    found = first_trouble(rows(*[3.1] * 10, 7.9))
    assert found is not None


def test_a_loss_that_falls_to_zero_and_stays_was_lost() -> None:
    """In the warm-up too: where fp16 skips every step, the loss is printed as 0 from there on."""
    found = first_trouble(rows(6.2, 0.0, 0.0, start=2))
    assert found is not None
    assert (found.kind, found.row.step) == ("loss-gone", 4)


def test_a_loss_that_reaches_zero_or_starts_there_was_not_lost() -> None:
    """Small losses are rounded to 0, one batch may have it, some losses start at it."""
    assert first_trouble(rows(0.4, 0.01, 0.0, 0.0)) is None
    assert first_trouble(rows(2.0, 0.0, 2.0, 2.1)) is None
    assert first_trouble(rows(0.0, 0.0, 0.0, 0.1)) is None


def test_noise_is_no_jump() -> None:
    """Small losses vary by half; that is a small batch."""
    assert first_trouble(rows(*[0.2, 0.35, 0.15, 0.4, 0.18] * 8)) is None


def test_warm_up_may_rise() -> None:
    """While the learning rate ramps, nats come and go."""
    assert first_trouble(rows(12.0, 22.0, 41.0, 30.0, start=1)) is None


def test_a_gradient_norm_jumps_too() -> None:
    """Five times the usual norm after a settled start."""
    usual = [ProgressRow(1000 + i, 2.0, 0.5) for i in range(10)]
    found = first_trouble([*usual, ProgressRow(1010, 2.0, 40.0)])
    assert found is not None
    assert found.kind == "grad-jump"


def test_progress_lines_of_several_frameworks_are_read() -> None:
    """Megatron, Hugging Face and plain shapes."""
    megatron = parse_progress(" iteration      900/ 1000 | lm loss: 2.5E+00 | grad norm: 0.750 |")
    assert megatron == ProgressRow(900, 2.5, 0.75)
    hugging = parse_progress("{'loss': 1.25, 'grad_norm': 0.5, 'epoch': 0.1}")
    assert hugging == ProgressRow(None, 1.25, 0.5)
    plain = parse_progress("step 12 loss=nan")
    assert plain is not None
    assert plain.loss is not None
    assert math.isnan(plain.loss)
    assert parse_progress("glossary: 3") is None


@pytest.mark.parametrize(
    ("row", "loss"),
    [
        ("Test: [120/500]  loss 0.91", None),
        ("Validation: step 5 loss nan", math.nan),
        ("test[1234]: iteration 10/100 | lm loss: 2.5 | grad norm: 1.1", 2.5),
        ("test[1234]: iteration 10/100 | lm loss: nan | grad norm: nan", math.nan),
    ],
)
def test_a_row_of_an_evaluation_is_left_out_unless_it_is_not_finite(
    row: str, loss: float | None
) -> None:
    """A job may be called `test`, and its tag begins each line; NaN is trouble wherever it is."""
    read = parse_progress(row)
    found = read.loss if read else None
    assert found == loss or (found is not None and loss is not None and math.isnan(found + loss))
