"""Phases that take long although nothing is wrong: evaluation, saving, compiling, slow data.

While one rank evaluates or saves, all others wait for it, and from outside that is a hang. What a
rank does is read from its stack, else from its progress file; how long it may take, from how long
it took before.
"""

import re
from collections.abc import Mapping

from brctl.evidence.job.data.waits import waits_for_data
from brctl.evidence.job.kernel_waits import waits_for_files, waits_for_page
from brctl.evidence.job.pace import is_in_first_step
from brctl.evidence.job.status import DONE_PHASE, WAITING_PHASE
from brctl.model.jobs.job_status import JobStatus, RankView

LONGER_THAN_EVER = 2.0
"""A phase that takes twice as long as its longest ever is no longer what it was (own)."""

LONG_PHASES = ("compile", "evaluation", "checkpoint")
"""Phases that may last for minutes; any other is excused only by its own past."""

INNER_FRAMES = 24

_BY_FRAME: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("evaluation", re.compile(r":(?:\w*_)?(?:evaluat\w*|validat(?:e|ion)\w*|eval_\w+|run_eval)$")),
    (
        "checkpoint",
        re.compile(
            r":(?:\w*_)?(?:save_(?:checkpoint|model|pretrained|state\w*)|async_save)$"
            r"|^(?:serialization|state_dict_saver|checkpoint)\.py:_?save\w*$"
        ),
    ),
    ("compile", re.compile(r"^(?:compile_fx|convert_frame|async_compile|cpp_extension)\.py:")),
)


def long_phase(view: RankView) -> str:
    """The long phase a rank is in, by its stack or its own word; "" for none."""
    for phase, pattern in _BY_FRAME:
        if any(pattern.search(frame) for frame in view.stack[:INNER_FRAMES]):
            return phase
    known = view.phase in LONG_PHASES or view.phase_longest_s is not None
    return view.phase or "" if known else ""


FIRST_STEP_S = 600.0
"""A first step compiles and tunes for minutes; one that takes longer hangs (own)."""


def at_work(status: JobStatus) -> Mapping[int, str]:
    """Ranks that may rightly take as long as they do, each with one sentence why."""
    first = is_in_first_step(status)
    return {
        view.rank: why
        for view in status.ranks
        if (why := _why(view) or (_first_step(view) if first else ""))
    }


def _first_step(view: RankView) -> str:
    """A rank of a job that has ended no step: how long one takes nobody knows yet."""
    age_s = view.phase_age_s
    if not view.alive or view.stopped_by or age_s is None or age_s > FIRST_STEP_S:
        return ""
    if view.phase in (None, WAITING_PHASE, DONE_PHASE):
        return ""
    return f"rank {view.rank} is in {view.phase} of its first step for {age_s:.0f} s"


def _why(view: RankView) -> str:
    phase = long_phase(view)
    if not view.alive or view.stopped_by or not phase:
        return ""
    age_s, longest_s = view.phase_age_s, view.phase_longest_s
    for_s = "" if age_s is None else f" for {age_s:.0f} s"
    if phase != view.phase or longest_s is None:
        return f"rank {view.rank} is in {phase}{for_s}" if phase in LONG_PHASES else ""
    if age_s is None or age_s > LONGER_THAN_EVER * longest_s:
        return ""
    return f"rank {view.rank} is in {phase}{for_s}, which took up to {longest_s:.0f} s before"


FILE_PHASES = frozenset({"checkpoint", "load"})


def held_by_storage(view: RankView) -> bool:
    """Blocked by a file system; by a page only where its phase reads or writes files."""
    files = {view.phase, long_phase(view)} & FILE_PHASES
    return waits_for_files(view) and bool(files or not waits_for_page(view))


def excused(status: JobStatus) -> frozenset[int]:
    """Ranks whose stacks and dumps convict no node: at long work, waiting for files, unseen.

    What a silent node's ranks do nobody saw, and its silence is evidence already; an answer that
    could not be read says as little of its ranks. Why a rank waits for its batch, the processes of
    its loader tell (`brctl/evidence/job/data/loaders.py`). That storage keeps one from where others
    wait is told by `brctl/evidence/job/absent.py`.
    """
    silent = {rank for node in status.silent for rank in status.job.ranks_on(node)}
    unread = {view.rank for view in status.ranks if view.alive is None and not view.stack}
    loading = {view.rank for view in status.ranks if waits_for_data(view)}
    missed = any(view.alive and view.phase == WAITING_PHASE for view in status.ranks)
    filing = {view.rank for view in status.ranks if missed and held_by_storage(view)}
    return frozenset({*at_work(status), *loading, *filing, *silent, *unread})
