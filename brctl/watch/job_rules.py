"""What the course of a job makes a watcher suspect, by the same readings as `dx`."""

from collections.abc import Iterator
from itertools import islice

from brctl.evidence.job.history import jumps, slow_down, uneven_since
from brctl.evidence.job.long_phases import at_work
from brctl.evidence.job.pace import patience_s
from brctl.evidence.job.wrong_numbers import wrong_numbers
from brctl.model.jobs.job_status import JobStatus
from brctl.model.watch.state import Sighting

JOB_RULES = ("rank-ended", "not-a-number", "wrong-numbers", "jump", "no-step", "slower")


def job_sightings(status: JobStatus, same_step_s: float, look: int) -> tuple[Sighting, ...]:
    """What one look at a job says against its course.

    Args:
        status: The job as its ranks describe it now.
        same_step_s: For how long the watcher has seen this step and no other, by its own clock: a
            node's clock that jumped tells of no stall.
        look: Number of this look.
    """
    if status.ended:
        return ()
    name = status.job.name
    found = [*_ended(status), *_not_a_number(status), *_wrong(status), *_course(status)]
    if not any(rule == "rank-ended" for rule, _ in found):
        found += _no_step(status, same_step_s)
    return tuple(Sighting(rule, name, look, text) for rule, text in found)


def looked_at(status: JobStatus) -> bool:
    """Whether the job said enough for silence of a rule to mean that all is well."""
    return status.ended or status.stalled is not None


def _ended(status: JobStatus) -> Iterator[tuple[str, str]]:
    ended = [view for view in status.ranks if view.exit_status not in (None, 0)]
    if ended:
        first = ended[0]
        text = f"rank {first.rank} on {first.node} ended with {first.exit_status}"
        yield "rank-ended", text if len(ended) == 1 else f"{len(ended)} ranks ended; {text}"


def _not_a_number(status: JobStatus) -> Iterator[tuple[str, str]]:
    """No node is named: a NaN spreads before anybody looks, and only a diagnosis tells whose."""
    bad = [v for v in status.ranks if v.loss_finite is False or v.grad_finite is False]
    if bad:
        firsts = [v.first_nonfinite_step or v.first_nonfinite_grad_step for v in bad]
        steps = [step for step in firsts if step is not None]
        yield (
            "not-a-number",
            f"no number on {len(bad)} ranks" + (f" since step {min(steps)}" if steps else ""),
        )


def _wrong(status: JobStatus) -> Iterator[tuple[str, str]]:
    """One sighting: whose numbers they are is a diagnosis's to say."""
    for item in islice(wrong_numbers(status), 1):
        yield "wrong-numbers", item.text


def _course(status: JobStatus) -> Iterator[tuple[str, str]]:
    for item in jumps(status):
        yield "jump", item.text
    if status.stalled:
        return
    if change := slow_down(status.history):
        yield "slower", f"a step takes {change.now_s:.3g} s; before, {change.before_s:.3g} s"
    elif change := uneven_since(status.history):
        times = f"{change.now_s:.3g} s; before, {change.before_s:.3g} s"
        yield "slower", f"some steps take far longer, the average {times}"


def _no_step(status: JobStatus, same_step_s: float) -> Iterator[tuple[str, str]]:
    limit_s = patience_s(status)
    if not status.stalled or same_step_s < limit_s or at_work(status):
        return
    usual_s = status.history.usual_step_s
    usual = f" (usual {usual_s:.3g})" if usual_s else ""
    yield "no-step", f"no step for {max(same_step_s, status.progress_age_s or 0.0):.0f} s{usual}"
