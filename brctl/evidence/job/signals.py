"""Ranks that a signal ended: told to stop, or crashed in native code.

Who sends a signal writes it nowhere that a job is read from; to whom it came first tells where to
ask. Launchers tell every rank to stop once one has failed: who was told beside one that failed by
itself began nothing.
"""

import signal
from collections.abc import Collection, Iterable

from brctl.evidence.job.status import DONE_PHASE, WAITING_PHASE
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView

_OF_A_SHELL = 128
"""What shells and containers add to a signal's number."""

_LAST_SIGNAL = 64
_TOLD = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})
_CRASHED = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
)

ALL_TOLD = 0.85
"""How sure it is that a job was told to stop of which every rank was; a launcher may have (own)."""

_NONE_FAILED = "none failed by itself: a scheduler, a time limit or a person did it"
_BESIDE = f"{{}} ended otherwise in {WAITING_PHASE}: a launcher stops the rest when one fails"


def signal_of(status: int | None) -> int:
    """The number of the signal that ended a process; 0 for none, or where it is not known.

    Examples:
        >>> signal_of(-15), signal_of(143), signal_of(1), signal_of(None)
        (15, 15, 0, 0)
    """
    number = -(status or 0) if (status or 0) < 0 else (status or 0) - _OF_A_SHELL
    return number if 0 < number <= _LAST_SIGNAL else 0


def name_of(status: int | None) -> str:
    """As people write it, `SIGTERM`."""
    try:
        return signal.Signals(signal_of(status)).name
    except ValueError:
        return f"signal {signal_of(status)}"


def was_told(view: RankView) -> bool:
    """Ended by a signal with which processes are asked to stop."""
    return signal_of(view.exit_status) in _TOLD and view.phase != DONE_PHASE


def was_killed(view: RankView) -> bool:
    """Ended by SIGKILL, which a shell passes on as 137."""
    return signal_of(view.exit_status) == signal.SIGKILL


def crashed(view: RankView) -> bool:
    """Ended by a signal that native code brings about, or its own abort."""
    return signal_of(view.exit_status) in _CRASHED


def began_there(status: JobStatus) -> tuple[RankView, ...]:
    """The ranks of the one node where ranks crashed, or were told to stop and no others were.

    None where a rank failed by itself: watchdogs abort the ranks that wait for it.
    """
    if any(_failed_by_itself(view) for view in status.ranks):
        return ()
    lives = any(view.alive for view in status.ranks)
    for ended_so in (crashed, was_told):
        found = tuple(
            v for v in status.ranks if ended_so(v) and not (lives and _may_be_timed_out(v))
        )
        if found:
            return found if len({view.node for view in found}) == 1 else ()
    return ()


def _may_be_timed_out(view: RankView) -> bool:
    """Aborted while it waited: by its watchdog, for one that may still live."""
    return signal_of(view.exit_status) == signal.SIGABRT and view.phase == WAITING_PHASE


def _failed_by_itself(view: RankView) -> bool:
    """Ended with a status of its own, and not while it waited for others."""
    own = view.exit_status not in (None, 0) and not signal_of(view.exit_status)
    return own and view.phase != WAITING_PHASE


def told_to_stop(status: JobStatus) -> Iterable[Evidence]:
    """One observation where the ranks of most nodes were told, and the rest only lost them.

    A rank that ended while it waited may have failed there itself: CUDA's errors come late.
    """
    told = [view for view in status.ranks if was_told(view)]
    if 2 * len(told) <= len(status.ranks) or len(told) < 2 or _others_ended(status, told):
        return
    names = ", ".join(sorted({name_of(view.exit_status) for view in told}))
    lost = sum(view.alive is not True and view not in told for view in status.ranks)
    yield Evidence(
        kind="job.told-to-stop",
        subject=Subject(""),
        weight=Weight.HINTS if lost else Weight.CONVICTS,
        fault=FaultClass.PREEMPTION_SIGTERM,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"{len(told)} of {len(status.ranks)} ranks were told to stop ({names}), and "
        + (_BESIDE.format(lost) if lost else _NONE_FAILED),
        raw=" ".join(f"rank {view.rank}: {view.exit_status}" for view in told[:8]),
        strength=None if lost else ALL_TOLD,
    )


def _others_ended(status: JobStatus, told: Collection[RankView]) -> bool:
    """Whether a rank is gone that was not told and did not end waiting for those that were."""
    return any(
        view.alive is not True
        and view not in told
        and (
            view.exit_status is None
            or view.phase != WAITING_PHASE
            or bool(signal_of(view.exit_status))
        )
        for view in status.ranks
    )
