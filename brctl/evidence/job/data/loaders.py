"""Ranks that wait for a batch: is it the data, the loader, the storage, or the machine?

The rules, in order, are those of `_RULES`; what a process did in two looks decides, never that its
rank is late. What many nodes wait for is a file server, whose clients are healthy.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from posixpath import normpath

from brctl.evidence.job.data.loader_processes import LoaderProcess, PathAnswer
from brctl.evidence.job.data.waits import fetches, in_loader, is_idle, is_worker, waits_for_data
from brctl.evidence.job.kernel_waits import is_file_wait
from brctl.evidence.job.long_phases import at_work
from brctl.evidence.job.status import WAITING_PHASE
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import LOADER_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView

Findings = tuple[tuple[Evidence, ...], tuple[Gap, ...]]

_LOCK = re.compile(r"futex")


FILES_TRIED = 4
NO_DATA = ("/proc/", "/sys/", "/dev/", "/net/", "//")


class Doing(StrEnum):
    """What a process that makes batches does, by two looks at it."""

    STOPPED = "stopped"
    IDLE = "idle"
    MOVES = "moves"
    READS = "reads"
    UNREAD = "unread"
    COMPUTES = "computes"
    LOCKED = "locked"


_RULES: tuple[tuple[Doing, Callable[[LoaderProcess], bool]], ...] = (
    (Doing.STOPPED, lambda p: p.state in ("T", "t")),
    (Doing.IDLE, lambda p: is_idle(p.stack)),
    (Doing.MOVES, lambda p: p.moved is True),
    (Doing.READS, lambda p: p.state == "D" or is_file_wait(p.kernel_wait)),
    (Doing.UNREAD, lambda p: p.moved is None),
    (Doing.COMPUTES, lambda p: p.state == "R" or p.kernel_wait in ("", "0")),
    (Doing.LOCKED, lambda p: bool(_LOCK.search(p.kernel_wait))),
    (Doing.READS, lambda _: True),
)

_CULPRITS = (
    Doing.STOPPED, Doing.READS, Doing.COMPUTES, Doing.LOCKED, Doing.MOVES, Doing.UNREAD,
)  # fmt: skip
"""Of several processes of one rank, what explains best that it waits."""


def doing(process: LoaderProcess) -> Doing:
    """What one process does."""
    return next(name for name, holds in _RULES if holds(process))


@dataclass(frozen=True, slots=True)
class _Wait:
    """A rank that waits for its batch, and who keeps it waiting; None where all are idle."""

    view: RankView
    culprit: LoaderProcess | None
    what: Doing


def data_waiters(status: JobStatus) -> tuple[RankView, ...]:
    """Ranks of a job that stands still that wait for a batch, longer than they ever had to."""
    if not status.stalled:
        return ()
    busy = at_work(status)
    return tuple(v for v in status.ranks if waits_for_data(v) and v.rank not in busy)


def files_waited_for(processes: Iterable[LoaderProcess]) -> tuple[str, ...]:
    """Files on which workers are stuck, for other nodes to try; the first few that are data."""
    stuck = (p for p in processes if doing(p) is Doing.READS and _may_be_tried(p))
    return tuple(dict.fromkeys(p.file for p in stuck))[:FILES_TRIED]


def _may_be_tried(process: LoaderProcess) -> bool:
    """A node names it and healthy ones open it: no device, nothing that asking would mount."""
    path, point = process.file, process.mount.rpartition(" on ")[2]
    if not path.startswith("/") or normpath(path) != path or path.startswith(NO_DATA):
        return False
    return bool(point) and (point == "/" or path.startswith(point.rstrip("/") + "/"))


def assess_loaders(
    status: JobStatus, processes: Sequence[LoaderProcess], answers: Sequence[PathAnswer] = ()
) -> Findings:
    """What keeps the ranks waiting that wait for a batch.

    Args:
        status: A job that stands still, with the stacks of its ranks.
        processes: Those ranks' own processes and their workers.
        answers: Which other nodes read the files that some wait for.
    """
    waits = [_wait(view, processes) for view in data_waiters(status)]
    known = [wait for wait in waits if wait is not None]
    several = _waited_for_by_several(known)
    evidence = [_judge(wait, several, status, answers) for wait in known]
    stuck = {w.view.node for w in known if w.what is Doing.READS}
    evidence += [_reads_well(answer) for answer in answers if _clears(answer, stuck)]
    return tuple(evidence), tuple(_gaps(status, processes, waits))


def _wait(view: RankView, processes: Iterable[LoaderProcess]) -> _Wait | None:
    """Who keeps a rank waiting; None where its own main thread is not in a loader."""
    mine = [p for p in processes if p.rank == view.rank]
    own = next((p for p in mine if p.pid is None), None)
    stack = own.stack if own is not None and own.stack else view.stack
    if own is not None and (fetches(stack) or (not stack and len(mine) == 1)):
        return _Wait(view, own, doing(own))
    if own is None or not in_loader(stack):
        return None
    workers = _workers(mine)
    for what in _CULPRITS:
        for worker in workers:
            if doing(worker) is what:
                return _Wait(view, worker, what)
    return None if _why_unseen(mine) else _Wait(view, None, Doing.IDLE)


def _workers(mine: Iterable[LoaderProcess]) -> list[LoaderProcess]:
    return [p for p in mine if p.pid is not None and (is_worker(p.stack) or not p.stack)]


def _why_unseen(mine: Sequence[LoaderProcess]) -> str:
    """What may hold a batch and was not looked into; "" where all workers were, and are idle."""
    own = next((p for p in mine if p.pid is None), None)
    if own is None or not _workers(mine):
        return "no look at its loader told what it does"
    looked_at = sum(p.pid is not None for p in mine)
    if own.children is None or looked_at < own.children:
        return f"{looked_at} of its {own.children or 'unknown number of'} processes were looked at"
    if own.pins_memory is None or own.pins_memory:
        return "its pin-memory thread may hold the batch, and was not looked at"
    return ""


def _waited_for_by_several(waits: Iterable[_Wait]) -> Mapping[str, int]:
    """Mounts that ranks on more than one node wait for, with the number of nodes."""
    nodes: dict[str, set[str]] = {}
    for wait in waits:
        if wait.what is Doing.READS and wait.culprit is not None:
            nodes.setdefault(wait.culprit.mount, set()).add(wait.view.node)
    return {mount: len(found) for mount, found in nodes.items() if len(found) > 1}


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a rank's wait means.

    Attributes:
        say: What its culprit does, as a sentence with {who}, {at}, {on}.
    """

    kind: str
    fault: FaultClass
    weight: Weight
    say: str


_MEANINGS: Mapping[Doing, _Meaning] = {
    Doing.STOPPED: _Meaning(
        "job.loader.stopped", FaultClass.HANG_MISMATCH, Weight.CONVICTS,
        "{who} is stopped (state T){at}: kill -CONT {pid} on {node} lets it go on",
    ),
    Doing.READS: _Meaning(
        "job.loader.reads", FaultClass.STORAGE_CHECKPOINT, Weight.CONVICTS,
        "{who} gets no answer ({wait}){at}{on}",
    ),
    Doing.COMPUTES: _Meaning(
        "job.loader.computes", FaultClass.DATA_LOADER, Weight.CONVICTS,
        "{who} computes{at}{on}, in both looks {apart} apart",
    ),
    Doing.LOCKED: _Meaning(
        "job.loader.locked", FaultClass.DATA_LOADER, Weight.CONVICTS,
        "{who} waits for a lock{at}{on}, in both looks {apart} apart",
    ),
    Doing.MOVES: _Meaning(
        "job.loader.slow", FaultClass.DATA_LOADER, Weight.HINTS,
        "{who} works on its batch{at}{on} and gets on: slow, not hung",
    ),
    Doing.UNREAD: _Meaning(
        "job.loader.unread", FaultClass.DATA_LOADER, Weight.HINTS,
        "{who} could not be looked into ({state}, {wait})",
    ),
    Doing.IDLE: _Meaning(
        "job.loader.queue", FaultClass.DATA_LOADER, Weight.CONVICTS,
        "all workers of {who} are idle and it waits for them: a message between them was lost",
    ),
}  # fmt: skip


def _judge(
    wait: _Wait,
    several: Mapping[str, int],
    status: JobStatus,
    answers: Sequence[PathAnswer],
) -> Evidence:
    meaning, process = _MEANINGS[wait.what], wait.culprit
    count = several.get(process.mount, 0) if process and wait.what is Doing.READS else 0
    where = _who_else(process, count, answers) if process else ""
    return Evidence(
        kind=meaning.kind,
        subject=Subject("" if count else wait.view.node, f"rank:{wait.view.rank}"),
        weight=meaning.weight,
        fault=meaning.fault,
        role=Role.ROOT,
        source=LOADER_CHECK,
        text=_sentence(meaning.say, wait) + where + _who_waits(wait.view, status, meaning.fault),
        raw=_raw(process),
    )


def _who_else(process: LoaderProcess, count: int, answers: Sequence[PathAnswer]) -> str:
    """How many nodes wait for the same, and how many are answered."""
    well = [a for a in answers if a.answers and a.path == process.file and a.node != process.node]
    took_ms = max((1000 * (answer.seconds or 0.0) for answer in well), default=0.0)
    many = f"; {count} nodes wait for {process.mount or 'their source'}" if count else ""
    return many + (f"; {len(well)} other nodes read it in {took_ms:.0f} ms" if well else "")


def _sentence(say: str, wait: _Wait) -> str:
    process = wait.culprit or LoaderProcess(wait.view.rank, wait.view.node)
    sample = f", samples {process.sample}" if process.sample else ""
    return say.format(
        who=process.called,
        at=f" in {process.place}" if process.place else "",
        on=(f", file {process.file}" if process.file else "") + sample,
        pid=process.pid or "PID",
        node=process.node,
        wait=process.kernel_wait or "no kernel wait",
        state=f"state {process.state}",
        apart="" if process.apart_s is None else f"{process.apart_s:.0f} s",
    )


def _who_waits(view: RankView, status: JobStatus, fault: FaultClass) -> str:
    waiting = sum(v.phase == WAITING_PHASE for v in status.ranks)
    sound = f"; nothing of this speaks against {view.node}"
    return (f"; {waiting} ranks wait for rank {view.rank}" if waiting else "") + (
        sound if fault is FaultClass.DATA_LOADER else ""
    )


def _raw(process: LoaderProcess | None) -> str:
    if process is None:
        return ""
    return f"state={process.state} wchan={process.kernel_wait} " + " < ".join(process.stack)[:400]


def _clears(answer: PathAnswer, stuck: Iterable[str]) -> bool:
    return answer.answers and answer.node not in stuck


def _reads_well(answer: PathAnswer) -> Evidence:
    took = "" if answer.seconds is None else f" in {answer.seconds * 1000:.0f} ms"
    return Evidence(
        kind="job.loader.reads-well",
        subject=Subject(answer.node),
        weight=Weight.CLEARS,
        fault=FaultClass.STORAGE_CHECKPOINT,
        role=Role.CONTEXT,
        source=LOADER_CHECK,
        text=f"{answer.node} is answered about {answer.path}{took}",
    )


_UNREAD = "a worker could not be looked into; py-spy cannot read a process in state D"


def _gaps(
    status: JobStatus, processes: Sequence[LoaderProcess], waits: Sequence[_Wait | None]
) -> Iterable[Gap]:
    """A rank waits for data and nobody could see what its loader does."""
    for view, wait in zip(data_waiters(status), waits, strict=True):
        if wait is None or wait.what is Doing.UNREAD:
            why = _why_unseen([p for p in processes if p.rank == view.rank]) or _UNREAD
            yield Gap(Subject(view.node, f"rank:{view.rank}"), LOADER_CHECK, why)
