"""Ranks that ended, or are about to."""

import re
from collections.abc import Iterable
from itertools import dropwhile

from brctl.evidence.job.signals import began_there, crashed, name_of, was_killed, was_told
from brctl.evidence.job.status import DONE_PHASE, WAITING_PHASE
from brctl.evidence.logs.progress.formats import steps_go_on
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import (
    CRASHED_FIRST,
    GONE_FIRST,
    KILLED_FIRST,
    LEFT_FIRST,
    RANKS_CHECK,
    TOLD_FIRST,
)
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView

PYTHON_EXCEPTION = 1
SAVING_PHASE = "checkpoint"

LEAVING_LINES = 12
"""A rank that wrote more than this after its last traceback went on; one that wrote less ends."""

_TRACEBACK = "Traceback (most recent call last)"
_ABORTED = "terminate called after throwing"
"""What C++ writes for an exception that nobody catches, as watchdogs throw it."""


def is_leaving(view: RankView) -> bool:
    """Between an exception and the end of its process a rank hangs for nobody: it has crashed.

    One that prints rows of later steps below it has caught it.
    """
    _, head, message = view.last_words.rpartition(_TRACEBACK)
    lines = [re.sub(r"^\[rank\d+\]: ", "", line) for line in message.splitlines()[1:]]
    after = list(dropwhile(lambda line: line.startswith(" "), lines))
    goes_on = len(after) > LEAVING_LINES or steps_go_on(after[1:])
    return bool(head) and not view.stopped_by and not goes_on


def ending(status: JobStatus) -> tuple[RankView, ...]:
    """Ranks that raised, wherever they stood, and whose end nobody recorded yet."""
    return tuple(
        v for v in status.ranks if v.exit_status is None and v.alive is not None and is_leaving(v)
    )


def raised(status: JobStatus) -> tuple[RankView, ...]:
    """Those of them that raised by themselves; who waited is a victim of another's."""
    return tuple(view for view in ending(status) if view.phase != WAITING_PHASE)


def leaving(status: JobStatus) -> Iterable[Evidence]:
    """Each rank that raised, as a hint at the code."""
    for view in raised(status):
        yield Evidence(
            kind="job.rank.raised",
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.HINTS,
            fault=FaultClass.USER_CODE,
            role=Role.ROOT,
            source=RANKS_CHECK,
            text=f"rank {view.rank} raised an exception in {view.phase} at step {view.step}"
            " and is ending",
            raw=f"phase={view.phase} exit_status={view.exit_status}",
        )


def first_ends(status: JobStatus) -> Iterable[Evidence]:
    """Ranks of one node that a signal ended, that left early or never came: it began there.

    Nothing here says why; the evidence is a lead for whoever looks on.
    """
    ended = [v for v in status.ranks if _ended_without_a_word(v)] or began_there(status)
    nodes = {view.node for view in ended}
    if len(nodes) != 1 or len(status.job.nodes) < 2:
        return
    for view in ended:
        kind, how = _how_it_ended(view)
        yield Evidence(
            kind=kind,
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.HINTS,
            fault=FaultClass.UNKNOWN,
            role=Role.ROOT,
            source=RANKS_CHECK,
            text=f"rank {view.rank} {how} in {view.phase or 'no phase'} at step {view.step};"
            " no other node's rank ended so",
            raw=f"exit_status={view.exit_status}",
        )


def _ended_without_a_word(view: RankView) -> bool:
    """A busy host records an end late: what the rank wrote last tells of it before."""
    early = view.exit_status in (0, None) and view.phase != DONE_PHASE
    said = view.exit_status is None and (is_leaving(view) or _ABORTED in view.last_words)
    return view.alive is False and ((early and not said) or was_killed(view))


def _how_it_ended(view: RankView) -> tuple[str, str]:
    """The kind of its evidence, and words for it."""
    if view.exit_status is None:
        return GONE_FIRST, "is not there, and nobody recorded that it ended,"
    if was_killed(view):
        return KILLED_FIRST, "was killed (SIGKILL)"
    if crashed(view):
        return CRASHED_FIRST, f"crashed ({name_of(view.exit_status)})"
    if was_told(view):
        return TOLD_FIRST, f"was told to stop ({name_of(view.exit_status)})"
    return LEFT_FIRST, "left with status 0, in the middle of training,"


def exits(status: JobStatus) -> Iterable[Evidence]:
    """Ended ranks: those that waited are victims; one that left by itself points at the code.

    Status 1 is how Python ends on an exception. It hints, and what the rank said decides: a dying
    GPU ends its rank the same way.
    """
    together = _saved_together(status)
    for view in status.ranks:
        if view.exit_status in (None, 0):
            continue
        victim = view.phase == WAITING_PHASE or (together and view.phase == SAVING_PHASE)
        own_exception = view.exit_status == PYTHON_EXCEPTION and not victim
        yield Evidence(
            kind="job.rank.exited",
            subject=Subject(view.node, f"rank:{view.rank}"),
            weight=Weight.HINTS if own_exception else Weight.CONTEXT,
            fault=FaultClass.USER_CODE if own_exception else None,
            role=Role.VICTIM if victim else Role.ROOT if own_exception else Role.CONTEXT,
            source=RANKS_CHECK,
            text=f"rank {view.rank} ended with status {view.exit_status} in {view.phase}"
            f" at step {view.step}",
            raw=f"exit_status={view.exit_status}",
        )


def _saved_together(status: JobStatus) -> bool:
    """Ranks make a save together: who ends in it where all do, or where one was lost, is a victim.

    A rank's own trouble with the file is in its last words, which are read besides.
    """
    ended = [view for view in status.ranks if view.exit_status is not None]
    all_in_save = len(ended) == len(status.ranks) > 1 and all(
        view.phase == SAVING_PHASE and view.exit_status == PYTHON_EXCEPTION for view in ended
    )
    return all_in_save or any(map(_ended_without_a_word, ended))
