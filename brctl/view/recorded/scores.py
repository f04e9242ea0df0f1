"""Recorded incidents judged against what they really were: the scores of a site's own faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.nodeset import fold
from brctl.model.verdict import Verdict
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

RIGHT, ACCUSED, UNSURE, MISSED = "right", "wrong", "cannot tell", "missed"


@dataclass(frozen=True, slots=True)
class Truth:
    """What a verdict turned out to be, in the words of who confirmed it.

    Attributes:
        fault: A class of faults; the name of one that this version does not know is never right.
        by: Who confirmed it, and `at` when.
    """

    fault: str
    nodes: tuple[str, ...]
    cause: str = ""
    by: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScoredLook:
    """One look of a file beside its truth."""

    file: str
    look: str
    truth: Truth
    now: tuple[Verdict, ...]

    @property
    def score(self) -> str:
        """How the likeliest verdict of today stands beside it."""
        first = self.now[0]
        if first.fault.value == self.truth.fault and set(first.nodes) == set(self.truth.nodes):
            return RIGHT
        if first.fault is FaultClass.UNKNOWN:
            return UNSURE
        return MISSED if first.fault is FaultClass.NO_FAULT else ACCUSED


def scores_page(looks: Sequence[ScoredLook], unconfirmed: Sequence[str]) -> Page:
    """The answer of `brctl check incidents`."""
    rows: list[Sequence[str]] = [("FILE", "LOOK", "WAS", "NODES", "NOW", "")]
    rows += [
        (
            look.file, look.look, printable(look.truth.fault, 30),
            printable(fold(look.truth.nodes) or "-", 30), look.now[0].fault.value, look.score,
        )
        for look in looks
    ]  # fmt: skip
    scores = _scores(looks)
    lines = [columns(rows)] if looks else []
    lines += [f"{name:<28}{value:.3f}" if isinstance(value, float) else f"{name:<28}{value}"
              for name, value in scores.items()]  # fmt: skip
    lines += [f"no cause confirmed: {name}" for name in unconfirmed]
    documents: list[Json] = [
        {
            "file": look.file,
            "look": look.look,
            "class": look.truth.fault,
            "nodes": list(look.truth.nodes),
            "now": look.now[0].fault.value,
            "score": look.score,
        }
        for look in looks
    ]
    body: dict[str, Json] = {
        "scores": scores, "looks": documents, "unconfirmed": list(unconfirmed),
    }  # fmt: skip
    return Page("IncidentScores", body, "\n".join(lines), _exit(looks))


def _scores(looks: Sequence[ScoredLook]) -> dict[str, float]:
    """As the bench of log classification counts; claimed is every answer but unknown."""
    of = {score: sum(look.score == score for look in looks) for score in _ALL}
    claimed = len(looks) - of[UNSURE]
    wrong = [(look.now[0].probability - (look.score == RIGHT)) ** 2 for look in looks]
    return {
        "cases": len(looks),
        "class_right_ratio": of[RIGHT] / max(1, len(looks)),
        "claimed_ratio": claimed / max(1, len(looks)),
        "precision_ratio": of[RIGHT] / max(1, claimed),
        "missed_faults": of[MISSED],
        "wrong_accused": of[ACCUSED],
        "brier": sum(wrong) / max(1, len(looks)),
    }


_ALL = (RIGHT, ACCUSED, UNSURE, MISSED)


def _exit(looks: Sequence[ScoredLook]) -> ExitCode:
    """0 all right, 1 some not, 3 where nothing has a confirmed cause."""
    if not looks:
        return ExitCode.UNKNOWN
    return ExitCode.OK if all(look.score == RIGHT for look in looks) else ExitCode.WARNING
