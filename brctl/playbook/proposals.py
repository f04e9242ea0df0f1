"""Whether a playbook may be proposed for a verdict."""

from fnmatch import fnmatchcase

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
    return None
