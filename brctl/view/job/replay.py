"""The groups of a replay, before anything runs."""

from collections.abc import Sequence
from typing import Protocol

from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.view.notices.page import Page


class Phases(Protocol):
    """The two rounds of dual-phase replay."""

    @property
    def m(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def k(self) -> int: ...
    def horizontal(self) -> Sequence[Sequence[int]]: ...
    def vertical(self) -> Sequence[Sequence[int]]: ...


def dual_phase_page(job: Job, phases: Phases) -> Page:
    """Both phases of the paper's plan, and whether their answer is unique."""
    both = {
        "horizontal": [[job.nodes[x] for x in group] for group in phases.horizontal()],
        "vertical": [[job.nodes[x] for x in group] for group in phases.vertical()],
    }
    unique = phases.m <= phases.n
    lines = [f"{job.name}: dual phase, k={phases.k} m={phases.m} n={phases.n}"]
    for name, groups in both.items():
        lines.append(f"{name}:")
        lines += [f"  {fold(group)}" for group in groups]
    lines.append("one bad machine is unique" if unique else "m > n: the answer is not unique")
    body = {
        "method": "dual-phase", "job": job.name, "k": phases.k, "m": phases.m, "n": phases.n,
        "unique": unique, "phases": both,
    }  # fmt: skip
    return Page("ReplayPlan", body, "\n".join(lines), next=(f"brctl replay run --job {job.name}",))


def first_round_page(job: Job, span: int, groups: Sequence[Sequence[str]]) -> Page:
    """The first round of the search; later ones follow from what fails."""
    lines = [f"{job.name}: groups of {span} nodes or more, then suspects with nodes that passed"]
    lines += [f"  {fold(group)}" for group in groups]
    body = {
        "method": "references", "job": job.name, "span": span,
        "first_round": [list(group) for group in groups],
    }  # fmt: skip
    return Page("ReplayPlan", body, "\n".join(lines), next=(f"brctl replay run --job {job.name}",))
