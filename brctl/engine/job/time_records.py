"""What a job's time is accounted from: its steps, its verdicts, its runs, a watcher's record."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import load_all
from brctl.engine.job.rank_files import fetch_rank_files
from brctl.engine.runs.read_run import sound_runs
from brctl.engine.watch.folder import WatchFolder
from brctl.evidence.job.numbers import bad_number
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_time import US, DoneStep, JobIncident
from brctl.model.runs.event import Event, EventType
from brctl.model.verdict import Verdict
from brctl.model.watch.state import WatchRecord
from brctl.playbook.run import Run

TAIL_BYTES = 16 << 20
STEPS_KEPT = 500_000
RECORDS_READ = 20_000
LONGEST_STEP_S = 86_400.0
STARTS, STOPS = frozenset({"job.restart", "job.start"}), frozenset({"job.stop"})
_NAMELESS = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)


@dataclass(frozen=True, slots=True)
class TimeRecords:
    """All that is known of a job's time.

    Attributes:
        began_us: When a run of brctl started it first, or its first known step began.
        notes: What could not be read.
        unread: The step file did not come; the steps are those that were kept.
    """

    began_us: int
    steps: tuple[DoneStep, ...]
    incidents: tuple[JobIncident, ...]
    notes: tuple[str, ...]
    unread: bool = False


async def gather_records(controller: Controller, job: Job, since: datetime) -> TimeRecords:
    """Everything since then; steps that were read are kept, because nodes leave with theirs."""
    path = controller.state_dir / "job-steps" / controller.settings.context / f"{job.name}.json"
    fresh, notes, unread = await _read_steps(controller, job)
    known = _load(path)
    steps = _merged(known, fresh)
    if steps != known:
        write_atomic(private_dir(path.parent) / path.name, _dump(steps))
    since_us = _us(since)
    steps = tuple(step for step in steps if step.begin_us >= since_us)
    runs = [run for run in sound_runs(controller.state_dir, since) if run.job == job.name]
    folder = WatchFolder(controller.state_dir, controller.settings.context)
    incidents = tuple(_incidents(controller.state_dir, job, runs, folder.records(RECORDS_READ)))
    known_from = [step.begin_us for step in steps[:1]] or [_us(controller.now())]
    started = [at for run in runs if (at := _started_us(run)) is not None and at >= since_us]
    began_us = min([*known_from, *started[:1]])
    incidents = tuple(i for i in incidents if (i.verdict_us or 0) >= began_us)
    return TimeRecords(began_us, steps, incidents, notes, unread)


async def _read_steps(
    controller: Controller, job: Job
) -> tuple[tuple[DoneStep, ...], tuple[str, ...], bool]:
    """The end of rank 0's step file, notes, and whether it did not come."""
    path = job.progress_dir / "steps.ndjson"
    files, notes = await fetch_rank_files(
        controller.transport,
        controller.inventory.pick(job.nodes[:1]),
        replace(job, ranks_per_node=1),
        lambda _rank: str(path),
        limit_bytes=TAIL_BYTES,
        fanout=1,
    )
    steps = tuple(step for file in files for step in read_steps(file.data))
    cut = [f"{path}: only its end was read" for file in files if not file.is_whole]
    return steps, (*notes, *cut), not files


class _StepLine(msgspec.Struct):
    step: int
    at: float
    seconds: float


def read_steps(data: bytes) -> Iterator[DoneStep]:
    """The steps of a step file; a line that makes no sense is left out."""
    for line in data.splitlines():
        try:
            row = msgspec.json.decode(line, type=_StepLine)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if 0 <= row.step < 1 << 53 and 0 < row.at < 1e11 and 0 <= row.seconds <= LONGEST_STEP_S:
            yield DoneStep(row.step, round(row.at * US), round(row.seconds * US))


def _merged(known: Sequence[DoneStep], fresh: Sequence[DoneStep]) -> tuple[DoneStep, ...]:
    every = {(step.end_us, step.step): step for step in (*known, *fresh)}
    return tuple(every[key] for key in sorted(every))[-STEPS_KEPT:]


def _load(path: Path) -> tuple[DoneStep, ...]:
    try:
        rows = msgspec.json.decode(path.read_bytes(), type=list[tuple[int, int, int]])
    except (OSError, msgspec.MsgspecError):
        return ()
    return tuple(DoneStep(*row) for row in rows)


def _dump(steps: Sequence[DoneStep]) -> str:
    return json.dumps([(step.step, step.end_us, step.seconds_us) for step in steps])


def _incidents(
    state_dir: Path, job: Job, runs: Sequence[Run], records: Sequence[WatchRecord]
) -> Iterator[JobIncident]:
    """Verdicts that a run acted on, or that nobody did, oldest first."""
    acted = {run.verdict_id: run for run in runs if run.verdict_id}
    verdicts = [stored.verdict for stored in load_all(state_dir)]
    named = [v for v in verdicts if v.job == job.name and v.fault not in _NAMELESS]
    taken = [v for v in named if v.id in acted] or named
    for verdict in sorted(taken, key=lambda v: v.decided_at):
        yield incident_of(verdict, acted.get(verdict.id), suspected_us(verdict, records))


def incident_of(verdict: Verdict, run: Run | None, suspected_us: int | None) -> JobIncident:
    """A verdict, and the run that acted on it, as moments."""
    events = run.events if run else ()
    return JobIncident(
        name=verdict.id,
        cause=verdict.fault.value,
        suspected_us=suspected_us,
        verdict_us=_us(verdict.decided_at),
        asked_us=_first(events, EventType.APPROVAL_ASKED),
        agreed_us=_first(events, EventType.APPROVAL_GIVEN),
        started_us=_started_us(run) if run else None,
        stopped_us=_done_us(run, STOPS) if run else None,
        spoilt_step=_spoilt_step(verdict),
        nodes=verdict.nodes,
        run=run.name if run else "",
    )


def _spoilt_step(verdict: Verdict) -> int | None:
    """The first step without numbers, where the evidence says it; else where the job stood."""
    if verdict.fault is not FaultClass.NUMERIC_NAN:
        return None
    first = bad_number(verdict.evidence).step
    return verdict.job_step if first is None else first


def suspected_us(verdict: Verdict, records: Sequence[WatchRecord]) -> int | None:
    """When the watcher first saw what led to the verdict: this rule on this subject."""
    told = next(
        (r for r in records if r.kind == "verdict" and r.text("verdict") == verdict.id), None
    )
    if told is None:
        return None
    # Records of earlier versions do not tell the subject.
    subjects = {told.text("subject")} - {""} or {verdict.job, *verdict.nodes}
    before = [
        r for r in records
        if r.kind == "suspicion" and r.seq < told.seq
        and r.text("rule") == told.text("rule") and r.text("subject") in subjects
    ]  # fmt: skip
    return _us(before[-1].at) if before else None


def _started_us(run: Run) -> int | None:
    """When a run had started the ranks; None for one that starts none."""
    return _done_us(run, STARTS)


def _done_us(run: Run, verbs: frozenset[str]) -> int | None:
    """When a run had done the last step that uses one of these verbs."""
    steps = {step.id for step in run.playbook.steps if step.uses in verbs}
    done = [
        event.at
        for event in run.events
        if event.type is EventType.STEP_RESULT
        and event.fields.get("ok") is True
        and str(event.fields.get("step")).partition("@")[0] in steps
    ]
    return _us(done[-1]) if done else None


def _first(events: Sequence[Event], wanted: EventType) -> int | None:
    return next((_us(event.at) for event in events if event.type is wanted), None)


def _us(moment: datetime) -> int:
    """Microseconds since 1970: integers, so that books sum exactly."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * US + since.microseconds


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
