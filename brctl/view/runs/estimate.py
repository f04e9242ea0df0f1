"""What a plan is expected to cost, as people read it before they say yes."""

from brctl.model.runs.estimate import Estimate, LostSteps, Took
from brctl.model.units import describe_duration
from brctl.view.notices.page import Json
from brctl.view.text import printable

NOT_KNOWN = "not known"


def estimate_lines(estimate: Estimate) -> list[str]:
    """Time, what is trained again, and what is left; what is not known says why."""
    lines = [f"time    {_time(estimate)}"]
    if estimate.resumes:
        lines.append(f"lost    {_loss(estimate.loss)}")
    left = estimate.standbys_left
    if left is not None:
        text = f"{left} free afterwards" if isinstance(left, int) else _unknown(left)
        lines.append(f"standby {text}")
    return lines


def _time(estimate: Estimate) -> str:
    until = "until training goes on" if estimate.resumes else "until it is done"
    at_most = f"at most {describe_duration(estimate.at_most_s)}"
    if estimate.took is None:
        why = f"{NOT_KNOWN} how long: no run of it ended well yet"
        return f"{at_most} {until} (its deadlines); {why}"
    about = f"about {describe_duration(estimate.took.usual_s)} {until}"
    return f"{about} ({_took(estimate.took)}), {at_most}"


def _took(took: Took) -> str:
    count = len(took.seconds)
    runs = f"{count} earlier run{'s' if count > 1 else ''}"
    whose = "" if took.same_job else " for other jobs"
    if count == 1:
        return f"as the {runs.removeprefix('1 ')}{whose}"
    shortest, longest = map(describe_duration, (took.seconds[0], took.seconds[-1]))
    return f"{runs}{whose} took {shortest} to {longest}"


def _loss(loss: LostSteps | str) -> str:
    if isinstance(loss, str):
        return _unknown(loss)
    saved = (
        f"step {loss.checkpoint_step} is in the memory of nodes that stay" if loss.in_memory
        else f"the newest whole checkpoint is of step {loss.checkpoint_step}"
    )  # fmt: skip
    if loss.checkpoint_age_s is not None:
        saved += f", {describe_duration(loss.checkpoint_age_s)} old"
    if loss.steps is None:
        return f"{NOT_KNOWN} how many steps; {saved}"
    lost = "1 step" if loss.steps == 1 else f"{loss.steps} steps"
    return f"{lost}: it stands at step {loss.stopped_step}, {saved}"


def _unknown(why: str) -> str:
    return printable(f"{NOT_KNOWN}: {why}", 200)


def estimate_document(estimate: Estimate | None) -> Json:
    """The same for programs; null is not known."""
    if estimate is None:
        return None
    loss = estimate.loss if isinstance(estimate.loss, LostSteps) else None
    left = estimate.standbys_left
    return {
        "seconds": estimate.took.usual_s if estimate.took else None,
        "earlier_runs": list(estimate.took.seconds) if estimate.took else [],
        "at_most_seconds": estimate.at_most_s,
        "checkpoint_step": loss.checkpoint_step if loss else None,
        "steps_lost": loss.steps if loss else None,
        "standbys_left": left if isinstance(left, int) else None,
    }
