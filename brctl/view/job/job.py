"""Jobs and checkpoints as people read them."""

from brctl.evidence.job.scheduler import describe_reason
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import SchedulerReason
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.trends import Trends
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration
from brctl.view.documents import node_set
from brctl.view.job.trends import trends_document, trends_text
from brctl.view.notices.page import Json, Page
from brctl.view.runs.code import code_document, code_line
from brctl.view.text import columns, printable


def job_page(job: Job, status: JobStatus, trends: Trends | None = None) -> Page:
    """The answer of `job show`: where it runs, and what its ranks say."""
    body: dict[str, Json] = {
        "job": {
            "name": job.name,
            **node_set(job.nodes),
            "ranks": job.world_size,
            "ranks_per_node": job.ranks_per_node,
            "parallel": dict(job.axes),
            "step": status.step,
            "progress_age_seconds": status.progress_age_s,
            "stalled": status.stalled,
            "progress_format": status.progress_format or None,
            "step_seconds": status.history.step_s,
            "usual_step_seconds": status.history.usual_step_s,
            "loss": status.history.last.loss if status.history.last else None,
            "silent": list(status.silent),
            "code": code_document(job.code),
            "origin": job.origin,
        },
        "ranks": [_rank_document(view) for view in status.ranks],
        "scheduler_reasons": [_reason_document(found) for found in status.reasons],
        "trends": trends_document(job, trends) if trends else None,
    }
    text = "\n".join(_job_lines(job, status, trends))
    ranks = tuple({"job": job.name, **_rank_document(view)} for view in status.ranks)
    return Page("Job", body, text, job_exit(status), (job.name,), table=ranks)


def job_exit(status: JobStatus) -> ExitCode:
    """What one look at a job is worth to cron."""
    if status.stalled is None:
        return ExitCode.UNKNOWN
    return ExitCode.CRITICAL if status.stalled else ExitCode.OK


def _job_lines(job: Job, status: JobStatus, trends: Trends | None) -> list[str]:
    axes = " ".join(f"{axis}={size}" for axis, size in job.axes)
    head = f"{job.name}  {job.world_size} ranks on {fold(job.nodes)}  {axes}"
    rows = [
        [str(v.rank), v.node, process_words(v), printable(v.phase or "-"),
         "-" if v.step is None else str(v.step)]
        for v in status.ranks
    ]  # fmt: skip
    lines = [
        head,
        *([code_line(job.code)] if job.code else []),
        standing_line(status),
        *(trends_text(job, trends) if trends else ()),
        columns([["RANK", "NODE", "PROCESS", "PHASE", "STEP"], *rows]),
    ]
    if status.silent:
        lines.append(f"no answer from {fold(status.silent)}")
    return [*lines, *(printable(describe_reason(found)) for found in status.reasons)]


def standing_line(status: JobStatus) -> str:
    """Whether it makes steps, at which one it is, how fast, and its loss."""
    age = (
        "" if status.progress_age_s is None else f", {describe_duration(status.progress_age_s)} old"
    )
    step = "no step seen" if status.step is None else f"step {status.step}{age}"
    word = {True: "STALLED", False: "progressing", None: "UNKNOWN"}[status.stalled]
    return f"{word}: {', '.join([step, *_pace(status)])}"


def _pace(status: JobStatus) -> list[str]:
    """Rate beside the usual one, loss, and whose rows of a log say so."""
    history, last = status.history, status.history.last
    step_s, usual_s = history.step_s, history.usual_step_s
    usual = f" (usually {usual_s:.3g} s)" if usual_s is not None else ""
    words = [f"{step_s:.3g} s a step{usual}"] if step_s is not None else []
    words += [f"loss {last.loss:.4g}"] if last is not None and last.loss is not None else []
    form = printable(status.progress_format)
    return [*words, f"read from logs ({form})"] if form else words


def process_words(view: RankView) -> str:
    """Whether a rank's process is there, or how it ended."""
    if view.alive is None:
        return "unknown"
    if view.alive:
        return "alive"
    return "gone" if view.exit_status is None else f"ended {view.exit_status}"


def _reason_document(found: SchedulerReason) -> dict[str, Json]:
    return {
        "what": found.what,
        "node": found.node,
        "ranks": list(found.ranks),
        "reason": found.reason,
        "message": found.message,
    }


def _rank_document(view: RankView) -> dict[str, Json]:
    return {
        "rank": view.rank,
        "node": view.node,
        "alive": view.alive,
        "exit_status": view.exit_status,
        "step": view.step,
        "phase": view.phase,
        "progress_age_seconds": view.progress_age_s,
    }
