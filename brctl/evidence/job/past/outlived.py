"""What a job outlived accuses nobody: a kill among other processes, a line that stopped no rank."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from brctl.evidence.job.ends import ending
from brctl.evidence.job.signals import was_killed
from brctl.evidence.job.status import WAITING_PHASE
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport

IN_FLIGHT = 1
"""Steps that the other ranks end without one that raised meanwhile."""

GROUP = "job.cgroup.path"
_KILL = "host.kernel.oom"
_KILLED_IN = re.compile(r"task_memcg=(?P<group>/[^,\s]{0,300})")
_EVERYBODYS = ("system.slice", "user.slice", "machine.slice", "docker", "init.scope")
"""Groups in which a machine keeps what has nothing to do with each other."""

_AGAINST = (Weight.HINTS, Weight.CONVICTS)


def of_this_job(
    evidence: Iterable[Evidence], status: JobStatus, reports: Iterable[NodeReport]
) -> tuple[Evidence, ...]:
    """The evidence, with kills that were none of the job's as context."""
    groups = _groups(reports)
    return tuple(_kill(item, status, groups.get(item.subject.node, ())) for item in evidence)


def _groups(reports: Iterable[NodeReport]) -> Mapping[str, tuple[str, ...]]:
    """The control groups of each node's ranks that live."""
    return {
        report.node: tuple(m.value for m in report.named(GROUP) if isinstance(m.value, str))
        for report in reports
    }


def _kill(item: Evidence, status: JobStatus, groups: Sequence[str]) -> Evidence:
    if not item.kind.startswith(_KILL) or item.weight not in _AGAINST:
        return item
    ranks = [view for view in status.ranks if view.node == item.subject.node]
    found = _KILLED_IN.search(item.raw)
    if found and groups and not _is_the_jobs(found["group"], groups, ranks):
        return _context(item, f"in {found['group']}, which is no group of the job")
    if ranks and status.stalled is False and all(view.alive for view in ranks):
        return _context(item, f"the job's {len(ranks)} ranks on {item.subject.node} go on")
    return item


def _is_the_jobs(killed_in: str, groups: Sequence[str], ranks: Sequence[RankView]) -> bool:
    """Whether a process was killed in a group of the job's ranks on its node.

    Of a rank that was killed nobody reads the group any more; it stood beside the others'.
    """
    if any(_is_within(group, killed_in) for group in groups):
        return True
    beside = killed_in.rpartition("/")[0]
    if not beside or beside.rpartition("/")[2] in _EVERYBODYS:
        return False
    return any(map(was_killed, ranks)) and any(
        group.rpartition("/")[0].endswith(beside) for group in groups
    )


def _is_within(rank_group: str, killed_in: str) -> bool:
    """Whether a process was killed in a rank's group, below it or above it; `/` is everybody's."""
    own = rank_group.rstrip("/")
    parts = killed_in.strip("/").split("/")
    if own.endswith("/" + "/".join(parts)) or parts == [""]:
        return True
    return any(own.endswith("/" + "/".join(parts[:n])) for n in range(1, len(parts)))


def outlived(
    evidence: Iterable[Evidence], earlier: JobStatus, later: JobStatus
) -> tuple[Evidence, ...]:
    """The evidence, with what ranks said as context where each made a step after it was read.

    A loss that is no number stops no training either, and counts.
    """
    if not _all_stepped(earlier, later):
        return tuple(evidence)
    why = "every rank made a step after it"
    return tuple(_context(item, why) if _is_said(item) else item for item in evidence)


def not_outlived(earlier: JobStatus, later: JobStatus) -> Iterable[Gap]:
    """Ranks that raised a moment ago and made no step since: the job may be about to end.

    One that waits may have handled it long ago: it lives, and the job made a step meanwhile.
    """
    goes_on = (later.step or 0) > (earlier.step or 0)
    after = {view.rank: view for view in later.ranks}
    for view in ending(earlier):
        then = after.get(view.rank)
        if goes_on and view.phase == WAITING_PHASE and then is not None and then.alive:
            continue
        if then is None or not _stepped(view, earlier, then, later):
            why = f"rank {view.rank} raised an exception in {view.phase}, and no step of its came"
            yield Gap(
                Subject(view.node, f"rank:{view.rank}"), RANKS_CHECK, f"{why} since: look again"
            )


def _stepped(view: RankView, earlier: JobStatus, then: RankView, later: JobStatus) -> bool:
    """Whether the rank took part in a step after it raised.

    Of a living rank that tells no steps the job's are counted, which takes part in each. One of
    these was in flight: a rank that raised in the optimizer had given its gradients for it.
    """
    if view.step is not None and then.step is not None:
        return then.alive is not False and then.step > view.step
    return then.alive is True and (later.step or 0) > (earlier.step or 0) + IN_FLIGHT


def said_in_passing(evidence: Iterable[Evidence], status: JobStatus) -> bool:
    """Whether a job that goes on said something that would stop another, or a rank raised.

    What a rank raised may accuse nobody, as another's exception that it only passed on.
    """
    said = bool(ending(status)) or any(_is_said(item) for item in evidence)
    return status.stalled is False and not status.ended and said


def _is_said(item: Evidence) -> bool:
    lines = item.kind.startswith("log.") and item.weight in _AGAINST
    return lines and item.fault is not FaultClass.NUMERIC_NAN


def _all_stepped(earlier: JobStatus, later: JobStatus) -> bool:
    before = {view.rank: view.step for view in earlier.ranks}
    return bool(later.ranks) and all(
        view.alive and view.step is not None and (then := before.get(view.rank)) is not None
        and view.step > then
        for view in later.ranks
    )  # fmt: skip


def _context(item: Evidence, why: str) -> Evidence:
    return replace(
        item, weight=Weight.CONTEXT, role=Role.CONTEXT, strength=None, text=f"{item.text}; {why}"
    )
