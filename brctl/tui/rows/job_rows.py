"""Jobs as rows: the list, and one job with its trends and its ranks; pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.jobs.job_status import JobStatus, RankView, StepWindow
from brctl.model.jobs.trends import NO_TRENDS, Trends
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration
from brctl.playbook.run import Run
from brctl.tui.rows.row import Row, Span, Tone, blank, heading, paragraph, row, safe, table
from brctl.tui.session.facts import Facts
from brctl.view.job.looks import job_sentence
from brctl.view.job.trends import trend_heads, trend_lines, trend_notes
from brctl.view.sparkline import sparkline

OLD_LOOK_S = 600.0
"""As the data of a sweep: two intervals of the five minutes at which cron looks."""
SLOWER_RATIO = 1.2
"""A step time of this many times its usual one is coloured; what it means, `dx` says."""
SPARK_WIDTH = 60
RANKS_SHOWN = 200
LABEL = "{:11}"

JOB_TONES: Mapping[JobState, Tone] = {
    JobState.PROGRESSING: Tone.SPARE, JobState.STALLED: Tone.CRIT, JobState.UNKNOWN: Tone.UNKNOWN,
    JobState.ENDED: Tone.DIM, JobState.STOPPED: Tone.CORDON,
}  # fmt: skip


def job_list(facts: Facts, now_at: datetime) -> list[Row]:
    """One line a job: state, step, age of the step, rate beside its usual one."""
    if not facts.jobs:
        return [row(("no job is declared; `jobs:` of the configuration names them", Tone.DIM))]
    head = ("JOB", "STATE", "STEP", "AGE", "S/STEP", "USUAL", "LOOKED", "NODES", "VERDICT")
    body = [(_cells(job, facts, now_at), f"job:{job.name}") for job in facts.jobs]
    return table(head, body, widest=30)


def _cells(job: Job, facts: Facts, now_at: datetime) -> tuple[Span | str, ...]:
    look, name = facts.looks.get(job.name), safe(job.name, 40)
    verdicts = " ".join(_verdicts_of(job.name, facts)) or "-"
    if look is None:
        unknown = ("not looked at", Tone.UNKNOWN)
        return (name, unknown, "-", "-", "-", "-", "never", str(len(job.nodes)), verdicts)
    return (
        name,
        (look.state.value.upper() if look.in_trouble else look.state.value, JOB_TONES[look.state]),
        "-" if look.step is None else str(look.step),
        "-" if look.progress_age_s is None else describe_duration(look.progress_age_s),
        _pace(look), _seconds(look.usual_step_s), age_of(look, now_at),
        str(len(job.nodes)), verdicts,
    )  # fmt: skip


def _verdicts_of(job: str, facts: Facts) -> Iterable[str]:
    return (safe(s.verdict.id, 20) for s in facts.open_verdicts if s.verdict.job == job)


def _pace(look: JobLook) -> Span:
    usual, now_s = look.usual_step_s, look.step_s
    slow = usual is not None and now_s is not None and now_s > SLOWER_RATIO * usual
    return (_seconds(now_s), Tone.WARN if slow else Tone.PLAIN)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def age_of(look: JobLook, now_at: datetime) -> Span:
    """How long ago somebody looked; old looks are coloured."""
    age_s = max((now_at - look.at).total_seconds(), 0.0)
    old = age_s > OLD_LOOK_S
    return (f"{describe_duration(age_s)} ago", Tone.WARN if old else Tone.PLAIN)


def job_rows(job: Job, facts: Facts, width: int, now_at: datetime) -> list[Row]:
    """One job: where it stands, how its steps and losses went, what each rank says."""
    look, status = facts.looks.get(job.name), facts.seen.get(job.name)
    rows = [
        row((safe(job.name, 80), Tone.HEAD), f"  {job.world_size} ranks on {_nodes(job)}  ",
            " ".join(f"{axis}={size}" for axis, size in job.axes)),
        *_standing(look, width, now_at), *_about(job, facts, width), blank(),
        *_trends(facts.past.get(job.name, ()), status, width), blank(),
        *_health(job, facts.trends.get(job.name, NO_TRENDS), width), blank(),
    ]  # fmt: skip
    return rows + (_ranks(status) if status else [row(("ranks: not asked yet", Tone.UNKNOWN))])


def _nodes(job: Job) -> str:
    return f"{safe(fold(job.nodes), 200)} ({len(job.nodes)})"


def _standing(look: JobLook | None, width: int, now_at: datetime) -> list[Row]:
    if look is None:
        return [row(("not looked at: r looks now", Tone.UNKNOWN))]
    looked, tone = age_of(look, now_at)
    said = paragraph(LABEL.format("now"), job_sentence(look), width, JOB_TONES[look.state])
    return [*said, row((LABEL.format("looked"), Tone.HEAD), (looked, tone))]


def _about(job: Job, facts: Facts, width: int) -> list[Row]:
    """Open verdicts about it, and the runs at work on it or waiting."""
    rows: list[Row] = []
    for stored in (s for s in facts.open_verdicts if s.verdict.job == job.name):
        verdict = stored.verdict
        where = safe(fold(verdict.nodes), 100) or "no node named"
        text = f"{safe(verdict.id, 20)} {verdict.confidence.value.upper()} {verdict.fault.value}"
        rows += paragraph(LABEL.format("verdict"), f"{text} {where}", width, Tone.WARN)
    for run in (r for r in facts.runs if isinstance(r, Run) and r.job == job.name and r.open):
        text = f"{run.name} {safe(run.playbook.name, 40)} {run.state.value}"
        waits = ": A approves, D denies" if run.waiting else ""
        rows += paragraph(LABEL.format("run"), f"{text}{waits}", width, Tone.WARN)
    return rows


def _trends(past: Sequence[JobLook], status: JobStatus | None, width: int) -> list[Row]:
    """Its own history as the step file has it, then what this terminal saw since it was opened."""
    rows = [heading("TRENDS   oldest left, now right")]
    windows = _windows(status)
    available = max(min(width - 40, SPARK_WIDTH), 10)
    rows += _trend("step time", [w.step_s for w in windows], "s", available)
    rows += _trend("waiting", [w.wait_s for w in windows], "s", available)
    rows += _trend("loss", [w.loss for w in windows], "", available)
    rows += _trend("grad norm", [w.grad_norm for w in windows], "", available)
    rows += _trend("steps/s", rates(past), "", available)
    if len(rows) == 1:
        rows.append(row(("nothing yet: no step file was read, and one look has no rate", Tone.DIM)))
    return rows


def _health(job: Job, trends: Trends, width: int) -> list[Row]:
    """What watchers and sweeps kept of it, and what nobody knows."""
    available = max(min(width - 50, SPARK_WIDTH), 10)
    lines = trend_lines(job, trends, available)
    rows = table(trend_heads(trends, available), ((line.cells, "") for line in lines), widest=30)
    notes = (row((note, Tone.UNKNOWN)) for note in trend_notes(job, trends))
    return [*(rows if lines else ()), *notes]


def _windows(status: JobStatus | None) -> list[StepWindow]:
    if status is None:
        return []
    newest = (status.history.recent, status.history.last)
    return [*status.history.past, *(window for window in newest if window is not None)]


def rates(past: Sequence[JobLook]) -> list[float | None]:
    """Steps a second between each two looks; a job that stands has 0, a restart a gap."""
    found: list[float | None] = []
    for before, after in pairwise(past):
        span_s = (after.at - before.at).total_seconds()
        if before.step is None or after.step is None or span_s <= 0 or after.step < before.step:
            found.append(None)
        else:
            found.append((after.step - before.step) / span_s)
    return found


def _trend(name: str, values: Sequence[float | None], unit: str, width: int) -> list[Row]:
    known = [value for value in values if value is not None]
    if not known:
        return []
    now = "-" if values[-1] is None else f"{values[-1]:.3g}"
    said = f"  {now} {unit}".rstrip() + f"   from {min(known):.3g} to {max(known):.3g}"
    return [row((LABEL.format(name), Tone.HEAD), sparkline(values, width), said)]


def _ranks(status: JobStatus) -> list[Row]:
    rows = table(
        ("RANK", "NODE", "PROCESS", "PHASE", "FOR", "STEP", "S/STEP", "WAITS"),
        ((_rank(view), "") for view in worst_first(status.ranks)[:RANKS_SHOWN]),
        widest=30,
    )
    if len(status.ranks) > RANKS_SHOWN:
        text = f"{RANKS_SHOWN} of {len(status.ranks)} ranks, those behind first"
        rows.append(row((text, Tone.WARN)))
    if status.silent:
        rows.append(row((f"no answer from {safe(fold(status.silent), 300)}", Tone.UNKNOWN)))
    return rows


def worst_first(ranks: Sequence[RankView]) -> list[RankView]:
    """Ranks that are gone or unknown, then those that are behind, then by number."""
    return sorted(ranks, key=lambda v: (v.alive is True, -1 if v.step is None else v.step, v.rank))


def _rank(view: RankView) -> tuple[Span | str, ...]:
    return (
        str(view.rank), safe(view.node, 40), _process(view), safe(view.phase or "-", 30),
        "-" if view.phase_age_s is None else describe_duration(view.phase_age_s),
        "-" if view.step is None else str(view.step),
        _seconds(view.step_s), _seconds(view.wait_s),
    )  # fmt: skip


def _process(view: RankView) -> Span:
    if view.alive is None:
        return ("unknown", Tone.UNKNOWN)
    if view.alive:
        return ("alive", Tone.PLAIN)
    if view.exit_status is None:
        return ("gone", Tone.CRIT)
    return (f"ended {view.exit_status}", Tone.CRIT if view.exit_status else Tone.DIM)
