"""Bare `brctl`: fleet, jobs, open verdicts and runs, and the next command, on one screen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from brctl.evidence.reach import unreached_together
from brctl.model.inventory import NodeRole
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.nodeset import fold
from brctl.model.units import rfc3339
from brctl.model.verdict import Verdict
from brctl.playbook.run import Run
from brctl.view.fleet.nodes import NOT_SWEPT, NodeLine, age_text
from brctl.view.fleet.reach import reach_lines, unreached_document
from brctl.view.job.looks import job_line
from brctl.view.notices.page import Page
from brctl.view.schemas.fleet import JobSizeDocument, OpenRunDocument
from brctl.view.text import printable


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A declared job, the nodes it is placed on, and the newest look at it."""

    name: str
    nodes: int
    look: JobLook | None


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that is known without asking a node.

    Attributes:
        age_s: Age of the newest sweep; None when nothing was swept yet.
        at: Now.
    """

    lines: Sequence[NodeLine]
    jobs: Sequence[KnownJob]
    open_verdicts: Sequence[Verdict]
    open_runs: Sequence[Run]
    age_s: float | None
    at: datetime


def status_page(context: str, status: Status) -> Page:
    """The answer of bare `brctl`."""
    states = [line.health.health.value if line.health else NOT_SWEPT for line in status.lines]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    cordoned = sum(line.cordon is not None for line in status.lines)
    spare = sum(line.node.role is NodeRole.STANDBY and not line.job for line in status.lines)
    reports = [line.health.report for line in status.lines if line.health]
    unreached = unreached_together(reports, {line.node.name: line.node for line in status.lines})
    body = {
        "counts": counts,
        "cordoned": cordoned,
        "standbys": spare,
        "jobs": [_job_row(job) for job in status.jobs],
        "open_verdicts": [verdict.id for verdict in status.open_verdicts],
        "open_runs": [_run_row(run) for run in status.open_runs],
        "unreached": unreached_document(unreached),
        "data_age_seconds": status.age_s,
    }
    head = _fleet_line(context, status, counts, cordoned, spare)
    text = "\n".join([head, *reach_lines(unreached), *_job_lines(status), *_trouble_lines(status)])
    return Page("Status", body, text, next=_next(status))


def _fleet_line(
    context: str, status: Status, counts: Mapping[str, int], cordoned: int, spare: int
) -> str:
    parts = "  ".join(f"{count} {state}" for state, count in counts.items())
    return (
        f"{context}  {len(status.lines)} nodes: {parts}  {cordoned} cordoned  {spare} standby"
        f"   {age_text(status.age_s)}"
    )


def _job_lines(status: Status) -> list[str]:
    lines = [f"job     {job_line(j.name, j.nodes, j.look, status.at)}" for j in status.jobs]
    return lines or ["jobs    none"]


def _trouble_lines(status: Status) -> list[str]:
    verdicts = [
        f"open    {v.id}  {v.confidence.value.upper()}  {v.fault.value}  {fold(v.nodes)}"
        f"  {f'job {v.job}' if v.job else ''}  playbook {v.playbook or '-'}"
        for v in status.open_verdicts
    ]
    return verdicts + [_run_line(run) for run in status.open_runs]


def _run_line(run: Run) -> str:
    about = f" for {run.verdict_id}" if run.verdict_id else ""
    why = f"  {printable(run.record.why, 80)}" if run.record.why and not run.alive else ""
    return f"run     {run.name}  {run.state.value.upper()}  {run.playbook.name}{about}{why}"


def _job_row(job: KnownJob) -> JobSizeDocument:
    return {
        "name": job.name,
        "nodes": job.nodes,
        "state": job.look.state.value if job.look else None,
        "step": job.look.step if job.look else None,
        "looked_at": rfc3339(job.look.at) if job.look else None,
    }


def _run_row(run: Run) -> OpenRunDocument:
    return {
        "run": run.name,
        "state": run.state.value,
        "playbook": run.playbook.name,
        "verdict": run.verdict_id or None,
        "job": run.job or None,
    }


def _next(status: Status) -> tuple[str, ...]:
    waiting = next((run.name for run in status.open_runs if run.waiting), None)
    if waiting:
        return (f"brctl play approve {waiting}", f"brctl play deny {waiting}")
    if status.open_runs:
        return (f"brctl play show {status.open_runs[0].name}",)
    if status.open_verdicts:
        first, why = status.open_verdicts[0], f"brctl why {status.open_verdicts[0].id}"
        return (f"brctl fix {first.id}", why) if first.playbook else (why,)
    stalled = [j.name for j in status.jobs if j.look and j.look.state is JobState.STALLED]
    if stalled:
        return (f"brctl dx {stalled[0]}",)
    return ("brctl sweep",) if status.age_s is None else ()
