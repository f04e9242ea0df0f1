"""What the rounds of both phases show: groups that fail, and the machines those have in common.

Rounds of odd numbers are the first phase, rounds of even numbers the second.
"""

from collections.abc import Sequence
from dataclasses import replace

from brctl.localise.replay import DualPhase
from brctl.localise.replay_digests import chance_of_strays, judge_digests
from brctl.model.localisation import GroupResult, RoundReport, Stage

BAD_ENDS = 2
"""Runs of a phase in which a group came to no end, after which it is not asked again."""


def judge_reports(reports: Sequence[RoundReport]) -> list[RoundReport]:
    """Every round in the light of the digests of all."""
    judged = judge_digests([(report.groups, report.results) for report in reports])
    pairs = zip(reports, judged, strict=True)
    return [replace(report, results=results) for report, results in pairs]


def is_settled(reports: Sequence[RoundReport], number: int) -> bool:
    """Whether another run of this phase would add nothing: a group of it failed, or all of one.

    An end without a result may be the time's, and not the machine's: that is asked for twice.
    """
    own = [report for report in _screen(reports) if (report.number - number) % 2 == 0]
    return bool(_failing(own)) or (number > 2 and _all_in_one(reports))


def _screen(reports: Sequence[RoundReport]) -> list[RoundReport]:
    return [report for report in reports if report.stage is Stage.SCREEN]


def is_wrong(result: GroupResult) -> bool:
    """Whether it came to an end, with wrong numbers."""
    return bool(result.nonfinite or result.differs)


def ended_badly(result: GroupResult) -> bool:
    """Whether it failed without a result, which may be the time's fault."""
    return bool(result.failed) and not is_wrong(result)


def took_its_time(report: RoundReport) -> bool:
    """Whether replays ended in it and none was cut off; a round without an answer tells no time."""
    ended = any(any(r.digests) or r.failed is not None for r in report.results)
    return ended and not any(map(ended_badly, report.results))


def _failing(phase: Sequence[RoundReport], bad_ends: int = BAD_ENDS) -> list[int]:
    """Places of its groups that gave a wrong result, else of those that failed in all its runs."""
    rows = list(zip(*(report.results for report in phase), strict=True))
    wrong = [i for i, row in enumerate(rows) if any(map(is_wrong, row))]
    always = [i for i, row in enumerate(rows) if all(r.failed for r in row)]
    return wrong or (always if len(phase) >= bad_ends else [])


def _all_in_one(reports: Sequence[RoundReport]) -> bool:
    return any(all_failed(report) for report in reports)


def all_failed(report: RoundReport) -> bool:
    """All groups gave wrong results in it, or none came to an end when they were first asked."""
    if len(report.results) < 2 or not all(r.failed for r in report.results):
        return False
    return report.number <= 2 or all(map(is_wrong, report.results))


def grid(reports: Sequence[RoundReport]) -> tuple[list[int], list[int]]:
    """Places of the groups that failed in the first phase, and in the second."""
    both = ([r for r in _screen(reports) if r.number % 2 == odd] for odd in (1, 0))
    rows, columns = map(_failing, both)
    return rows, columns


def suspects_of(
    nodes: tuple[str, ...], phases: DualPhase, reports: Sequence[RoundReport]
) -> tuple[int, ...]:
    """Machines in failing groups of both phases, and of the rounds that parted those."""
    suspects = phases.suspects(*grid(reports))
    for report in reports:
        failing = _failing([report], bad_ends=1)
        if report.stage is Stage.ISOLATE and len(failing) == 1 and len(suspects) > 1:
            suspects = tuple(x for x in suspects if nodes[x] in report.groups[failing[0]])
    return suspects


def one_suspect(nodes: tuple[str, ...], phases: DualPhase, reports: Sequence[RoundReport]) -> str:
    """The machine that one failing group of each phase leaves, if it is one."""
    suspects = suspects_of(nodes, phases, reports)
    one_by_one = all(len(places) == 1 for places in grid(reports))
    return nodes[suspects[0]] if one_by_one and len(suspects) == 1 else ""


def chance_of(node: str, nodes: tuple[str, ...], reports: Sequence[RoundReport]) -> float:
    """See `chance_of_strays`, over all rounds."""
    rounds = [(report.groups, report.results) for report in reports]
    return chance_of_strays(node, len(nodes), rounds)
