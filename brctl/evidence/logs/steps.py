"""Rows of training steps as a proof of health: steps after a warning show that it was survived."""

import math
from collections import deque
from dataclasses import dataclass, field

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import healthy
from brctl.evidence.numeric import ProgressRow

STEPS_NEEDED = 3
"""Steps that must follow a warning: the one in flight is printed after an error as well."""

STEPS = healthy("progress.steps", "loss", 0.85, "training goes on")
"""Not matched by text: the reader makes it from rows that advance."""


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

    def see(self, row: ProgressRow, line: int, at_s: float | None, text: str) -> None:
        """Take one row; a value that is no number proves nothing and ends the count."""
        values = [v for v in (row.loss, row.grad_norm) if v is not None]
        if not all(map(math.isfinite, values)):
            self._rows.clear()
            return
        if row.step is not None and self._step is not None and row.step < self._step:
            self.restarted_line = line
            self._rows.clear()
        self._step = row.step if row.step is not None else self._step
        self._total += 1
        self._rows.append((line, at_s, text))

    def proof(self, source: str) -> LogEvent | None:
        """The event that shows steps going on, placed at the first row of the last few."""
        if len(self._rows) < STEPS_NEEDED:
            return None
        line, at_s, text = self._rows[0]
        fields = {"restarted": str(self.restarted_line)} if self.restarted_line else {}
        return LogEvent(STEPS, source, line, text[:400], at_s, fields, count=self._total)
