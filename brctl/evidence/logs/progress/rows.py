"""Rows of training steps: steps after a warning show that it was survived, slow ones what slows."""

import math
import re
from collections import deque
from dataclasses import dataclass, field

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import healthy, root
from brctl.evidence.numeric import ProgressRow
from brctl.model.fault import FaultClass

STEPS_NEEDED = 3
"""Steps that must follow a warning: the one in flight is printed after an error as well."""

STEPS = healthy("progress.steps", "loss", 0.85, "training goes on")
"""Not matched by text: the reader makes it from rows that advance."""

NORM_BACK = healthy(
    "progress.norm-back", "grad norm", 0.5, "loss scalers of mixed precision: a step is skipped",
    settles=("numeric.nan", "progress.nan", "torch.nan"),
)  # fmt: skip
"""Made from a finite norm after one that was not, where the loss stayed finite all the time."""

LOADER = root(
    FaultClass.DATA_LOADER, "progress.loader-slow", "loss", 0.74, "meters of ImageNet trainers",
    own=True,
)  # fmt: skip
"""Made from rows whose step is slow because the batch came late."""

_METERS = re.compile(
    r"\btime:?\s+([\d.]{1,12})\b.{0,60}?\bdata(?:[_ ]time)?:?\s+([\d.]{1,12})\b", re.I
)
_LOADER_SHARE = 0.8
_SLOWER = 5.0
_SLOW_S = 1.0
_SLOW_ROWS = 2
_KEPT = 100


def _is_finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


@dataclass(slots=True)
class StepRows:
    """The newest rows of one input; its proof starts at the first of the last few.

    Attributes:
        restarted_line: Where the step counter last fell back: the job began anew.
    """

    restarted_line: int = 0
    _rows: deque[tuple[int, float | None, str]] = field(
        default_factory=lambda: deque(maxlen=STEPS_NEEDED)
    )
    _step: int | None = None
    _total: int = 0
    _fastest_s: float = math.inf
    _slow: list[tuple[int, float | None, str]] = field(default_factory=list)
    _norm_gone: bool = False
    _loss_gone: bool = False
    _norm_back: tuple[int, float | None, str] | None = None

    def see(self, row: ProgressRow, line: int, at_s: float | None, text: str) -> None:
        """Take one row; a value that is no number, or a loss of 0, ends the count of proof."""
        self._see_norm(row, line, at_s, text)
        if row.loss == 0.0 or not (_is_finite(row.loss) and _is_finite(row.grad_norm)):
            self._rows.clear()
            return
        if row.step is not None and self._step is not None and row.step < self._step:
            self.restarted_line = line
            self._rows.clear()
        self._step = row.step if row.step is not None else self._step
        self._total += 1
        self._rows.append((line, at_s, text))
        if "ata" in text:
            self._see_meters(line, at_s, text)

    def _see_norm(self, row: ProgressRow, line: int, at_s: float | None, text: str) -> None:
        self._loss_gone = self._loss_gone or row.loss is None or not math.isfinite(row.loss)
        if row.grad_norm is None:
            return
        if math.isfinite(row.grad_norm):
            self._norm_back = (line, at_s, text) if self._norm_gone else None
        else:
            self._norm_gone, self._norm_back = True, None

    def _see_meters(self, line: int, at_s: float | None, text: str) -> None:
        match = _METERS.search(text)
        if match is None or match[1].count(".") > 1 or match[2].count(".") > 1:
            return
        step_s, data_s = float(match[1]), float(match[2])
        self._fastest_s = min(self._fastest_s, step_s)
        late = data_s >= _LOADER_SHARE * step_s
        if late and step_s >= max(_SLOW_S, _SLOWER * self._fastest_s) and len(self._slow) < _KEPT:
            self._slow.append((line, at_s, text))

    def loader(self, source: str) -> LogEvent | None:
        """The event that shows steps waiting for data."""
        if len(self._slow) < _SLOW_ROWS:
            return None
        line, at_s, text = self._slow[0]
        return LogEvent(LOADER, source, line, text[:400], at_s, count=len(self._slow))

    def norm_back(self, source: str) -> LogEvent | None:
        """The event that shows a gradient norm finite again under a loss that always was."""
        if self._norm_back is None or self._loss_gone:
            return None
        line, at_s, text = self._norm_back
        return LogEvent(NORM_BACK, source, line, text[:400], at_s)

    def proof(self, source: str) -> LogEvent | None:
        """The event that shows steps going on, placed at the first row of the last few."""
        if len(self._rows) < STEPS_NEEDED:
            return None
        line, at_s, text = self._rows[0]
        fields = {"restarted": str(self.restarted_line)} if self.restarted_line else {}
        return LogEvent(STEPS, source, line, text[:400], at_s, fields, count=self._total)
