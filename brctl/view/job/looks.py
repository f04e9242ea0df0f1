"""Jobs as cron, Nagios, Prometheus and the one-screen status tell them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.nodeset import fold
from brctl.model.sweeps.sweep import Health
from brctl.model.units import describe_duration
from brctl.model.verdict import Verdict
from brctl.view.schema import JobLookDocument
from brctl.view.text import printable

_HEALTH = {JobState.STALLED: Health.CRITICAL, JobState.UNKNOWN: Health.UNKNOWN}
_VERDICTS_SHOWN = 3


def job_health(look: JobLook) -> Health:
    """What a job adds to the exit code of a sweep; one that is stopped on purpose adds nothing."""
    return _HEALTH.get(look.state, Health.OK)


def job_sentence(look: JobLook) -> str:
    """Where a job stands, in words."""
    step = f" at step {look.step}" if look.step is not None else ""
    because = f": {printable(look.because, 80)}" if look.because else ""
    age_s = look.progress_age_s
    ago = "" if age_s is None else f" for {describe_duration(age_s)}"
    words = {
        JobState.STALLED: f"stands still{ago}{step}",
        JobState.ENDED: f"ended{step}",
        JobState.STOPPED: f"is stopped{step}{because}",
        JobState.UNKNOWN: f"is unknown{because or ': none of its ranks left a trace'}",
        JobState.PROGRESSING: f"step {look.step}{_pace(look)}",
    }
    return words[look.state]


def job_trouble(looks: Iterable[JobLook]) -> tuple[str, ...]:
    """A sentence for each job that is in trouble."""
    troubled = (look for look in looks if job_health(look) is not Health.OK)
    return tuple(f"job {look.job} {job_sentence(look)}" for look in troubled)


def _pace(look: JobLook) -> str:
    if look.step_s is None:
        return ""
    usual = "" if look.usual_step_s is None else f", usually {look.usual_step_s:.3g}"
    return f", {look.step_s:.3g} s a step{usual}"


def job_news_text(look: JobLook, before: JobLook | None, verdicts: Sequence[Verdict]) -> str:
    """What cron says of a job: new trouble and its end, and nothing while nothing changes."""
    if job_health(look) is Health.OK:
        ended = before is not None and (before.told or job_health(before) is not Health.OK)
        return f"JOB  OK       {look.job}  {job_sentence(look)}" if ended else ""
    if before is not None and before.told and look.is_the_trouble_of(before):
        return ""
    word = "CRIT   " if look.state is JobState.STALLED else "UNKNOWN"
    lines = [f"JOB  {word}  {look.job}  {job_sentence(look)}"]
    lines += [f"     {line}" for line in map(_verdict_line, verdicts[:_VERDICTS_SHOWN])]
    return "\n".join(lines)


def _verdict_line(verdict: Verdict) -> str:
    where = fold(verdict.nodes) or "no node named"
    return (
        f"{verdict.id}  {verdict.confidence.value.upper()}  {verdict.fault.value}  {where}"
        f"  brctl why {verdict.id}"
    )


def job_look_document(look: JobLook) -> JobLookDocument:
    """The same for programs."""
    return {
        "job": look.job,
        "state": look.state.value,
        "step": look.step,
        "progress_age_seconds": look.progress_age_s,
        "step_seconds": look.step_s,
        "usual_step_seconds": look.usual_step_s,
        "because": look.because or None,
        "verdict": look.verdict_id or None,
    }


def job_line(name: str, nodes: int, look: JobLook | None, now: datetime) -> str:
    """A job in bare `brctl`; what was never looked at is said to be so."""
    if look is None:
        return f"{name} on {nodes} nodes, not looked at"
    age = describe_duration((now - look.at).total_seconds())
    return f"{name} on {nodes} nodes: {job_sentence(look)} (looked {age} ago)"


def job_totals(looks: Iterable[JobLook], context: str) -> Mapping[str, float]:
    """Prometheus series; what is not known is left out, because a zero would be a lie."""
    return {
        f'{name}{{context="{context}",job="{look.job}"}}': value
        for look in looks
        for name, value in _values(look)
    }


def _values(look: JobLook) -> Iterator[tuple[str, float]]:
    if look.step is not None:
        yield "brctl_job_step", float(look.step)
    if look.progress_age_s is not None:
        yield "brctl_job_progress_age_seconds", round(look.progress_age_s, 3)
    if look.step_s is not None:
        yield "brctl_job_step_seconds", round(look.step_s, 4)
    if look.state is not JobState.UNKNOWN:
        yield "brctl_job_stalled", float(look.state is JobState.STALLED)
