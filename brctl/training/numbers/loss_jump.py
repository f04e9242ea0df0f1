"""Whether the loss has left its own past, and since which step.

The rule is that of `brctl dx`, which sees windows of steps and comes later.
"""

import math
from collections import deque
from statistics import median

JUMP_RATIO = 5.0
"""ByteRobust (arXiv 2509.16293, section 4.1)."""

USUAL_STEPS = 32
LEAST_STEPS = 8
BACK_STEPS = 20
"""So many steps in a row at its old height, and the loss has come back (own)."""


class LossJump:
    """Follows the loss of all ranks together, step by step."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=USUAL_STEPS)
        self._quiet = 0
        self._since: int | None = None

    @property
    def since(self) -> int | None:
        """The first step whose loss is far above its past; None while all is well.

        The weights it was computed with are those of the step before.
        """
        return self._since

    def see(self, step: int, loss: float) -> None:
        """A step that is over; only losses of the usual height become part of what is usual.

        NaN says nothing here: one such step is what loss scalers skip, and it is told otherwise.
        """
        if math.isnan(loss):
            return
        if self._is_off(loss):
            self._quiet = 0
            self._since = step if self._since is None else self._since
            return
        self._usual.append(loss)
        self._quiet += 1
        if self._quiet >= BACK_STEPS:
            self._since = None

    def _is_off(self, loss: float) -> bool:
        if len(self._usual) < LEAST_STEPS:
            return False
        usual = median(self._usual)
        return usual > 0 and loss >= JUMP_RATIO * usual
