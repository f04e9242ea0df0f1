"""Losses and gradients that are no numbers, and where they were so first.

Loss and gradient norm of a rank are its own, before any exchange with the others; one step later
the reduced gradient has carried the NaN to every rank, and all but the first are victims.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import NUMBERS_BAD, RANK_GRADIENT, RANK_LOSS, RANKS_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView

_SINCE_STEP = re.compile(r"since step (\d{1,15})(?:\.\.(\d{1,15}))?\b")


@dataclass(frozen=True, slots=True)
class BadNumber:
    """Where evidence says that numbers went wrong first; None for what it does not say.

    Attributes:
        step: The earliest at which they may have.
        by_step: The step by which they had for sure.
        rank: The one rank on which they did; None where it was several together.
    """

    step: int | None = None
    by_step: int | None = None
    rank: int | None = None


def bad_number(evidence: Iterable[Evidence]) -> BadNumber:
    """The first step without numbers, and the rank whose own numbers were first."""
    numeric = [item for item in evidence if item.fault is FaultClass.NUMERIC_NAN]
    found = [match for item in numeric for match in _SINCE_STEP.findall(item.text)]
    steps = [(int(first), int(last or first)) for first, last in found]
    first = {item.subject.device for item in numeric if item.weight is Weight.CONVICTS}
    ranks = [int(name[5:]) for name in first if name.startswith("rank:") and name[5:].isdecimal()]
    step, by_step = min(steps, default=(None, None))
    return BadNumber(step, by_step, ranks[0] if len(ranks) == 1 else None)


def non_finite(status: JobStatus) -> Iterable[Evidence]:
    """The first rank with a bad number is named, or the ranks of one node that were first together.

    Ranks of one node share tensor groups, which carry a NaN within the step; where ranks of several
    nodes were first together, nobody is named.
    """
    bad = [view for view in status.ranks if view.loss_finite is False or view.grad_finite is False]
    steps = {view: step for view in bad if (step := _first_bad(view)) is not None}
    first = min(steps.values(), default=None)
    earliest = [view for view in bad if steps.get(view) == first]
    known = len(steps) == len(bad)
    if len(bad) > 1 and not (known and _at_one_place(earliest, bad)):
        yield _together(status, len(bad), first)
        earliest = []
    for view in bad:
        yield _bad_number(view, status, first=view in earliest)
    if not bad and status.history.last is not None and status.history.last.nonfinite:
        yield _together(status, 0, None)


def _at_one_place(earliest: Sequence[RankView], bad: Sequence[RankView]) -> bool:
    return len(earliest) < len(bad) and len({view.node for view in earliest}) == 1


def _first_bad(view: RankView) -> int | None:
    steps = (view.first_nonfinite_step, view.first_nonfinite_grad_step)
    return min((step for step in steps if step is not None), default=None)


def _bad_number(view: RankView, status: JobStatus, *, first: bool) -> Evidence:
    what = "local loss" if view.loss_finite is False else "own gradient"
    bad = sum(v.loss_finite is False or v.grad_finite is False for v in status.ranks)
    return Evidence(
        kind=RANK_LOSS if view.loss_finite is False else RANK_GRADIENT,
        subject=Subject(view.node, f"rank:{view.rank}"),
        weight=Weight.CONVICTS if first else Weight.HINTS,
        fault=FaultClass.NUMERIC_NAN,
        role=Role.ROOT if first else Role.VICTIM,
        source=RANKS_CHECK,
        text=f"the {what} of rank {view.rank} is not finite since step"
        f" {_first_bad(view)}; {bad} of {len(status.ranks)} ranks have none now",
        raw=f"loss_finite={view.loss_finite} grad_finite={view.grad_finite}"
        f" first_nonfinite_step={view.first_nonfinite_step}"
        f" first_nonfinite_grad_step={view.first_nonfinite_grad_step}",
    )


def _together(status: JobStatus, bad: int, first: int | None) -> Evidence:
    """The numbers are bad for sure, and nothing says on whose machine they became so."""
    since = f" since step {first}" if first is not None else ""
    who = f"{bad} of {len(status.ranks)} ranks have no finite loss or gradient{since}, none first"
    text = who if bad else "the loss over all ranks is not finite, and no rank says its own"
    return nobody_named(NUMBERS_BAD, text, "the reduction carried it, and nobody can be named")


def nobody_named(kind: str, text: str, why: str) -> Evidence:
    """The job's numbers are wrong for sure, and no machine is accused."""
    return Evidence(
        kind=kind,
        subject=Subject(""),
        weight=Weight.CONVICTS,
        fault=FaultClass.NUMERIC_NAN,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"{text}: {why}",
    )
