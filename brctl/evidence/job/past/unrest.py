"""How far the usual step of a window wanders by itself: batches of any length are no fault.

Of steps that differ, the lower quartile of a few is luck. By how much, two things tell: what a step
takes on average beside that quartile, and how far the quartiles of the past lie apart. The first
also grows with every save, so alone it only asks for a second window (decision 0465).
"""

from collections.abc import Sequence
from statistics import median

from brctl.model.jobs.job_status import StepWindow

OF_FEW_STEPS = 2.0
"""Of the distance from the lower quartile to the mean: four deviations of a quartile of six steps,
whose spread is half that distance in batches of log-normal length (own)."""

OF_MORE_STEPS = 0.5
"""Where two windows or more say it: two deviations of a quartile of 25 steps (own)."""

OF_THE_RANGE = 2.0
"""Or so many times as far above all that was as those lie apart: steps of a job that saves every
fourth are even, whatever its mean (own)."""

WITHOUT_THE_ODD = 4
"""Of so many windows the lowest and the highest are left out: one odd window is no habit (own)."""


def is_clear_of_unrest(before: Sequence[StepWindow], after: Sequence[StepWindow]) -> bool:
    """Whether windows since a change are further above those before than these wander.

    Windows without means say nothing of it, and count as even.
    """
    was = sorted(window.step_s for window in before if window.step_s is not None)
    usual = median(was)
    if len(was) >= WITHOUT_THE_ODD:
        was = was[1:-1]
    least = min(window.step_s for window in after if window.step_s is not None)
    uneven_s = _above_the_quartile(before)
    if len(after) == 1:
        return least >= usual + OF_FEW_STEPS * uneven_s
    bounds = (usual + OF_MORE_STEPS * uneven_s, was[-1] + OF_THE_RANGE * (was[-1] - was[0]))
    return least >= min(bounds)


def _above_the_quartile(windows: Sequence[StepWindow]) -> float:
    """How much longer than its lower quartile a step is on average, without the longest, in s."""
    known = [
        window.trimmed_mean_s - window.step_s
        for window in windows
        if window.trimmed_mean_s is not None and window.step_s is not None
    ]
    return median(known) if known else 0.0
