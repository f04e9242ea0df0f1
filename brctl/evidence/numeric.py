"""NaN and jumps in loss and gradient norm: the paper's 5x rule, applied to logs or progress rows.

Source: ByteRobust (arXiv 2509.16293) section 4.1: NaN, or a 5x rise of loss or gradient norm. The
paper leaves the reference window open; here it is the median of the last rows. A language-model
loss rarely rises 5x (it starts near ten nats), so a rise of 1.6x and two nats counts as a jump too.
A loss that falls to exactly 0 and stays there was lost as well: fp16 ends so where every step is
skipped, and the progress bar goes on.
"""

import math
import re
from collections import deque
from dataclasses import dataclass, field
from statistics import median

JUMP_RATIO = 5.0
LOSS_RATIO = 1.6
LOSS_RISE_NATS = 2.0
GONE_FROM = 0.5
"""A loss that was smaller may be rounded to 0, or reach it."""
WINDOW_ROWS = 32
GRADIENT_ROWS_NEEDED = 5
"""Gradient norms of the first steps differ by orders of magnitude in healthy runs."""

_REFRESH_ROWS = 8
"""Rows between two looks at the median: a log of a month has millions of rows."""

WARM_UP_STEPS = 200
"""While the learning rate ramps up, losses rise by nats and come back in healthy runs."""


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """One optimiser step as the job reports it; None means not reported, NaN is a reading."""

    step: int | None
    loss: float | None
    grad_norm: float | None = None


@dataclass(frozen=True, slots=True)
class NumericTrouble:
    """The first bad value of one row.

    Attributes:
        kind: `nan`, `loss-jump`, `loss-gone` or `grad-jump`.
        ratio: Value over the median before it; None for a value that is none.
    """

    kind: str
    row: ProgressRow
    ratio: float | None = None

    def describe(self) -> str:
        """One sentence."""
        place = f"step {self.row.step}" if self.row.step is not None else "a step"
        if self.kind == "nan":
            return f"loss or gradient norm is not finite at {place}"
        if self.kind == "loss-gone":
            return f"loss fell to exactly 0 before {place}"
        word = "loss" if self.kind == "loss-jump" else "gradient norm"
        return f"{word} is {self.ratio:.1f} times its recent median at {place}"


@dataclass(slots=True)
class NumericWatch:
    """Follows rows in order and says when one breaks the rule."""

    _losses: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_ROWS))
    _norms: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_ROWS))
    _seen: int = 0
    _usual_loss: float = 0.0
    _usual_norm: float = 0.0

    def see(self, row: ProgressRow) -> NumericTrouble | None:
        """The trouble this row shows, or None; the row then joins the window."""
        trouble = self._judge(row)
        if row.loss is not None and math.isfinite(row.loss):
            self._losses.append(row.loss)
        if row.grad_norm is not None and math.isfinite(row.grad_norm):
            self._norms.append(row.grad_norm)
        self._seen += 1
        if self._seen % _REFRESH_ROWS == 0 or self._seen < _REFRESH_ROWS:
            self._usual_loss = median(self._losses) if self._losses else 0.0
            self._usual_norm = median(self._norms) if self._norms else 0.0
        return trouble

    def _judge(self, row: ProgressRow) -> NumericTrouble | None:
        values = [value for value in (row.loss, row.grad_norm) if value is not None]
        if not all(map(math.isfinite, values)):
            return NumericTrouble("nan", row)
        usual = self._usual_loss
        if usual >= GONE_FROM and row.loss == 0.0 and self._losses[-1] == 0.0:
            return NumericTrouble("loss-gone", row)
        if row.step is not None and row.step < WARM_UP_STEPS:
            return None
        if row.loss is not None and usual > 0 and jumped(row.loss, usual):
            return NumericTrouble("loss-jump", row, row.loss / usual)
        if row.grad_norm is not None and len(self._norms) >= GRADIENT_ROWS_NEEDED:
            usual = self._usual_norm
            if usual > 0 and row.grad_norm > max(JUMP_RATIO * usual, 1.0):
                return NumericTrouble("grad-jump", row, row.grad_norm / usual)
        return None


def jumped(loss: float, usual: float) -> bool:
    """Whether a loss is far above what it was: five times, or by nats where it began near ten."""
    if loss > JUMP_RATIO * usual and loss - usual > 1.0:
        return True
    return usual >= 1.0 and loss > LOSS_RATIO * usual and loss - usual > LOSS_RISE_NATS


_NUMBER = r"(?P<value>[+-]?(?:nan|inf(?:inity)?|\d+(?:\.\d*)?(?:e[+-]?\d+)?))(?![\w.])"
_IS = r"['\"]?\s*(?:value)?(?:\s*[:=|]\s*|\s+)['\"]?(?:tensor\()?"
# Lower-case text and patterns that start with plain letters: `re` then skips ahead like a text
# search, which matters on logs whose every line is progress.
_LOSS = re.compile(r"loss" + _IS + _NUMBER)
_NORM = re.compile(r"grad(?:ient)?[ _-]?norm" + _IS + _NUMBER)
_STEP = re.compile(r"(?:iteration|iter|step)\W{0,14}(?P<step>\d{1,12})\b")
_TRAINING_LOSS = re.compile(r"(?:^|[^\w-])(?:(?:lm|train|training|total|per_token)[ _/-]*)?$")
_EVALUATED = re.compile(r"\W{0,4}(?:test|val(?:id(?:ation)?)?|eval(?:uation)?)(?:ing)?\b ?[:\[(]")
"""A row of an evaluation has another loss than the rows of training around it."""

_NAME_LENGTH = 16


def parse_progress(text: str) -> ProgressRow | None:
    """The row a log line of Megatron, DeepSpeed, Hugging Face, Lightning or plain shape reports."""
    lowered = text.lower()
    loss = next((m for m in _LOSS.finditer(lowered) if _is_training(lowered, m.start())), None)
    norm = _NORM.search(lowered)
    if loss is None and norm is None:
        return None
    if norm is None and loss is not None and _is_of_evaluation(lowered, loss):
        return None
    step = _STEP.search(lowered)
    return ProgressRow(
        step=int(step["step"]) if step else None,
        loss=float(loss["value"]) if loss else None,
        grad_norm=float(norm["value"]) if norm else None,
    )


def _is_of_evaluation(lowered: str, loss: re.Match[str]) -> bool:
    """Whether a row tells of an evaluation; not finite, a loss is trouble wherever it stands."""
    return bool(_EVALUATED.match(lowered)) and math.isfinite(float(loss["value"]))


def _is_training(text: str, start: int) -> bool:
    """False for `aux_loss` and `glossary`: only the training loss is followed."""
    return _TRAINING_LOSS.search(text[max(0, start - _NAME_LENGTH) : start]) is not None
