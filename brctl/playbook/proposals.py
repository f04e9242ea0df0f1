"""Whether a playbook may be proposed for a verdict."""

from fnmatch import fnmatchcase

from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.runs.playbook import Playbook
from brctl.model.verdict import Confidence, Verdict

_ORDER = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)


def why_not(playbook: Playbook, verdict: Verdict) -> str | None:
    """Why a playbook does not fit a verdict, or None when it does."""
    if not any(fnmatchcase(str(verdict.fault), pattern) for pattern in playbook.classes):
        return f"{playbook.name} is not for {verdict.fault}"
    if _ORDER.index(verdict.confidence) < _ORDER.index(playbook.min_confidence):
        return (
            f"{verdict.id} is of {verdict.confidence} confidence,"
            f" {playbook.name} wants {playbook.min_confidence}"
        )
    worth = CATALOGUE[verdict.fault].worth_stopping
    if verdict.stalled is False and not worth and _only_stops(playbook):
        return (
            f"job {verdict.job} took steps when {verdict.id} was decided, {playbook.name} stops it"
        )
    return None


def _only_stops(playbook: Playbook) -> bool:
    """It stops a job to look or to start it again, and takes no machine that is at fault out."""
    verbs = {step.uses for step in playbook.steps}
    evicts = any(spec.source == "verdict.suspects" for spec in playbook.inputs.values())
    return "job.stop" in verbs and not evicts
