"""The job against its own past: slower steps, a loss or a gradient norm out of all proportion.

A fleet that is slow as a whole has no odd node, and a loss that is finite may still be nonsense;
only what the same job did before tells. What it did before is read from windows of its step file.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median, median_low

from brctl.evidence.job.data.skew import BUSY_SHARE
from brctl.evidence.job.past.unrest import is_clear_of_unrest
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import (
    GRADIENT_NORM_JUMPED,
    LOSS_JUMPED,
    RANKS_CHECK,
    SLOW_LOADER,
)
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, StepHistory, StepWindow

SLOWER_RATIO = 1.2
"""Steps that take a fifth longer than before are news (own; a step rate down by a fifth)."""

CLEAR_OF_ALL = 1.1
"""And longer by a tenth than every window before, so that ordinary unrest is no change."""

UNEVEN_RATIO = 1.3
"""Where most steps are as quick as ever, so much longer ones on average are news (own)."""

LEAST_OF_A_MEAN = 6
"""A mean of fewer steps is that of their one odd step (own)."""

NOISE_S = 0.03
"""A step that grew by less than this grew by what a busy host makes of it (own)."""

LEAST_WINDOWS = 2
"""One window before the change may itself be the odd one."""

MANY_WINDOWS = 5

LEAST_STEPS = 5
"""Fewer steps make no median."""

CAUSE_SHARE = 0.6
"""A part of the step that accounts for so much of the growth is where the time goes."""

JUMP_RATIO = 5.0
"""ByteRobust (arXiv 2509.16293, section 4.1): a loss or gradient norm of 5 times its median."""

_Value = Callable[[StepWindow], float | None]
_Clear = Callable[[Sequence[StepWindow], Sequence[StepWindow]], bool]


@dataclass(frozen=True, slots=True)
class SlowDown:
    """A lasting change for the worse.

    Attributes:
        since: Number of the first step of the first slow window.
        load_s: What getting a batch takes more than before, on rank 0; None when not measured.
        wait_s: What rank 0 waits more than before in collectives; None when not measured.
    """

    before_s: float
    now_s: float
    since: int
    load_s: float | None
    wait_s: float | None

    @property
    def growth_s(self) -> float:
        return self.now_s - self.before_s


def change_for_worse(history: StepHistory) -> SlowDown | None:
    """Since when the job is slower than it was: in every step, or on average."""
    return slow_down(history) or uneven_since(history)


def slow_down(history: StepHistory) -> SlowDown | None:
    """The change since which every window is slower than those before; None when there is none.

    A change that did not last is over, and a job that was always as slow as now is not slower, nor
    one whose steps differ as much by themselves.
    """
    return _slower_since(history, is_clear_of_unrest)


def _slower_since(history: StepHistory, clear: _Clear | None = None) -> SlowDown | None:
    if history.recent is None:
        return None
    windows = [w for w in (*history.past, history.recent) if w.step_s is not None]
    return _rise(windows, _step_s, _step_s, SLOWER_RATIO, clear=clear)


def uneven_since(history: StepHistory) -> SlowDown | None:
    """The same of what steps take on average, in a job whose usual step is as quick as ever.

    Some steps of many then take far longer: somebody is late again and again, not always. The mean
    of what was counts every save and evaluation, and that of what is leaves out the longest steps,
    so that a job that was always uneven did not become it. Two windows have to say so.
    """
    if history.recent is None or slow_down(history) is not None:
        return None
    windows = [
        window
        for window in (*history.past, history.recent)
        if window.count >= LEAST_OF_A_MEAN and None not in (_mean_s(window), _trimmed_s(window))
    ]
    # Of two windows before, the mean would let one pause in one of them hide what came since.
    return _rise(
        windows, _mean_s, _trimmed_s, UNEVEN_RATIO, least_after=LEAST_WINDOWS, usual=median_low
    )


def _rise(
    windows: Sequence[StepWindow],
    then: _Value,
    now: _Value,
    ratio: float,
    *,
    least_after: int = 1,
    clear: _Clear | None = None,
    usual: Callable[[Sequence[float]], float] = median,
) -> SlowDown | None:
    """The first window since which all take so many times what was taken before.

    `then` tells what steps of a window before it took, and `now` what those since take, which also
    has to be clear of what `now` tells of all before. Of windows since there are `least_after`.
    """
    for split in range(LEAST_WINDOWS, len(windows) - least_after + 1):
        before, after = windows[:split], windows[split:]
        then_s, now_s = _median(before, then, usual), _median(after, now)
        if then_s is None or now_s is None or now_s < max(ratio * then_s, then_s + NOISE_S):
            continue
        above = min(_known(after, now)) >= CLEAR_OF_ALL * _high(_known(before, now))
        if above and (clear is None or clear(before, after)):
            return SlowDown(
                then_s, now_s, after[0].first,
                _more(before, after, lambda w: w.load_s), _more(before, after, lambda w: w.wait_s),
            )  # fmt: skip
    return None


def _high(values: Sequence[float]) -> float:
    """The largest; of many the second, for one odd window is no habit."""
    return sorted(values)[-2 if len(values) >= MANY_WINDOWS else -1]


def _step_s(window: StepWindow) -> float | None:
    return window.step_s


def _mean_s(window: StepWindow) -> float | None:
    return window.mean_s


def _trimmed_s(window: StepWindow) -> float | None:
    return window.trimmed_mean_s


def _known(windows: Sequence[StepWindow], value: _Value) -> list[float]:
    return [found for w in windows if (found := value(w)) is not None]


def _median(
    windows: Sequence[StepWindow],
    value: _Value,
    usual: Callable[[Sequence[float]], float] = median,
) -> float | None:
    known = _known(windows, value)
    return usual(known) if known else None


def _more(before: Sequence[StepWindow], after: Sequence[StepWindow], value: _Value) -> float | None:
    then_s, now_s = _median(before, value), _median(after, value)
    return None if then_s is None or now_s is None else now_s - then_s


def usual_pace(status: JobStatus) -> bool | None:
    """Whether steps go on as they used to, or the job ended well; None when nobody can tell.

    No past was read, or steps are longer by no more than they differ by themselves.
    """
    history = status.history
    if status.ended:
        return True
    if change_for_worse(history) is not None:
        return False
    known = history.recent is not None and len(history.past) >= LEAST_WINDOWS
    may_be_slower = _slower_since(history) is not None
    return True if known and not may_be_slower else None


def slower(status: JobStatus, busy: bool) -> Iterable[Evidence]:
    """Steps that take longer than this job's own used to; no node is named by that.

    Rank 0's past says that its batches come later; where every rank says it of itself, it is so,
    unless the hosts have more to do than they can, which delays loaders by itself.

    Args:
        status: The job.
        busy: Its hosts have more to do than they can.
    """
    change = None if status.stalled else slow_down(status.history)
    if change is None:
        return
    loads = change.load_s is not None and change.load_s >= CAUSE_SHARE * change.growth_s
    all_load = loads and _all_load(status, change)
    said = ", and so does every other rank" if all_load else ""
    sure = all_load and not (busy and (change.load_s or 0.0) < BUSY_SHARE * change.now_s)
    yield Evidence(
        kind=SLOW_LOADER if all_load else "job.steps.slower",
        subject=Subject(""),
        weight=Weight.CONVICTS if sure else Weight.HINTS,
        fault=FaultClass.DATA_LOADER if loads else FaultClass.STRAGGLER_SLOW,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"a step takes {change.now_s:.3g} s since about step {change.since}; before, it took"
        f" {change.before_s:.3g} s{_where(change)}{said}",
        raw=f"before_s={change.before_s} now_s={change.now_s} since={change.since}",
    )


def _all_load(status: JobStatus, change: SlowDown) -> bool:
    """Every rank waits for its batch about as long as the steps have become longer.

    Of few steps since a start none: its loaders, caches and readers are still filling.
    """
    loads = [v.load_s if v.recent_steps >= LEAST_STEPS else None for v in status.ranks]
    return len(loads) > 1 and all(
        load_s is not None and load_s >= CAUSE_SHARE * change.growth_s for load_s in loads
    )


def _where(change: SlowDown) -> str:
    """Where rank 0 spends the longer step, as far as its job says."""
    parts = {"waiting for its batch": change.load_s, "in collectives": change.wait_s}
    words = [
        f"{seconds:.3g} s of it {where}"
        for where, seconds in parts.items()
        if seconds is not None and seconds >= CAUSE_SHARE * change.growth_s
    ]
    return f"; rank 0 spends {', '.join(words)}" if words else ""


def jumps(status: JobStatus) -> Iterable[Evidence]:
    """A loss or gradient norm far above its own past, or 0: numbers went wrong, who knows where."""
    series: tuple[tuple[str, str, _Value], ...] = (
        (LOSS_JUMPED, "loss", lambda w: w.loss),
        (GRADIENT_NORM_JUMPED, "gradient norm", lambda w: w.grad_norm),
    )
    for kind, name, value in series:
        usual, now = _median(status.history.past, value), _newest(status.history, value)
        if usual is None or now is None or usual <= 0:
            continue
        if now == 0.0:
            yield _numbers_went_wrong(kind, f"the {name} is 0, before it was {usual:.4g}")
        if now < JUMP_RATIO * usual:
            continue
        since = _told_since(status)
        yield _numbers_went_wrong(
            kind,
            f"the {name} is {now:.4g}, {now / usual:.3g} times what it was before ({usual:.4g}),"
            f" since step {since or _since(status.history, value, JUMP_RATIO * usual)}",
            alike=_alike(status) if kind == LOSS_JUMPED else "",
        )


def _told_since(status: JobStatus) -> str:
    """As ranks followed it: the update before a bad loss may be what made it. "" if none did."""
    newest = status.step or 0
    told = [view.loss_off_since for view in status.ranks if view.loss_off_since is not None]
    known = [step for step in told if 0 < step <= newest]
    return f"{median_low(known) - 1}..{median_low(known)}" if known else ""


def _since(history: StepHistory, value: _Value, least: float) -> str:
    """From the step after the last low window to the end of the first high one, `210..219`."""
    windows = [w for w in (*history.past, history.last) if w is not None and value(w) is not None]
    later = list(takewhile(lambda w: (value(w) or 0.0) >= least, reversed(windows)))
    low = windows[len(windows) - len(later) - 1]
    return f"{low.first + low.count}..{later[-1].first + max(later[-1].count, 1) - 1}"


def _alike(status: JobStatus) -> str:
    """Among whom nothing differs, where every rank compares what must be equal; else ""."""
    views = status.ranks
    if not views or not all(
        v.compared_tensors and not v.wrong_numbers and not v.has_unread_numbers for v in views
    ):
        return ""
    return "all ranks" if len({v.compared_kind for v in views}) == 1 else "all ranks of one kind"


def _newest(history: StepHistory, value: _Value) -> float | None:
    """The newest steps alone: a jump shows at once, and one odd batch of three is none."""
    return value(history.last) if history.last is not None else None


def _numbers_went_wrong(kind: str, text: str, *, alike: str = "") -> Evidence:
    """A loss far too large is sure where the job compares its replicas; alone it is a hint."""
    why = f"; what must be equal on {alike} is equal: code or data, or what one gave to all"
    return Evidence(
        kind=kind,
        subject=Subject(""),
        weight=Weight.CONVICTS if alike else Weight.HINTS,
        fault=FaultClass.NUMERIC_NAN,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=text + (why if alike else ""),
    )
