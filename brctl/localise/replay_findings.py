"""What the two phases leave: one machine, a grid of them, or none."""

from collections.abc import Sequence

from brctl.localise.repetitions import least_chance
from brctl.localise.replay import DualPhase
from brctl.localise.replay_digests import CHANCE
from brctl.localise.replay_rounds import (
    all_failed,
    chance_of,
    grid,
    is_wrong,
    one_suspect,
    suspects_of,
)
from brctl.model.localisation import (
    Conclusion,
    Exclusion,
    FaultKind,
    Finding,
    RoundReport,
    Stage,
)

_ONE_OF_ONE = 0.9
"""The paper asks for no confirmation; two failures of one machine are taken for that much."""

_EVERYWHERE = 0.95
"""Several machines that compute wrongly in the same step are rarer than code or data; assumed."""

_MISS = 0.01


def conclude_phases(
    nodes: tuple[str, ...], phases: DualPhase, reports: Sequence[RoundReport]
) -> Conclusion:
    """The machines in failing groups of both phases; several are a grid, and nobody is sure."""
    rows, columns = grid(reports)
    tests = tuple((p.number, i) for p in reports for i, r in enumerate(p.results) if r.failed)
    unmeasured = any(r.failed is None for report in reports for r in report.results)
    everywhere = [report for report in reports if all_failed(report)]
    suspects = tuple(nodes[x] for x in suspects_of(nodes, phases, reports))
    if everywhere:
        finding = _of_no_machine(everywhere, tests)
    elif suspect := one_suspect(nodes, phases, reports):
        finding = _of_one(suspect, nodes, reports)
    elif suspects:
        chance = max(len(rows), len(columns)) / len(suspects)
        why = f"{len(rows)} x {len(columns)} failing groups meet in these; some are innocent"
        finding = Finding(FaultKind.UNDECIDABLE, suspects, chance, tests, 0, why)
    elif apart := _apart(reports):
        why = (
            "digests differ between groups and which is right is not known: one of these computes"
            " wrongly, or no two replays are equal"
        )
        finding = Finding(FaultKind.UNDECIDABLE, apart, 1.0 / len(apart), why=why)
    elif unmeasured or rows or columns:
        why = "the phases do not agree, or groups were not measured"
        kinds = {r.kind for report in reports for r in report.results if r.kind}
        if len(kinds) > 1:
            why += f"; digests are compared within one kind of node, and here are {len(kinds)}"
        finding = Finding(FaultKind.UNDECIDABLE, (), 0.0, tests, 0, why)
    else:
        finding = Finding(FaultKind.NONE, (), 0.0, why="no group failed")
    count = sum(len(group) for report in reports for group in report.groups)
    clean = 0 if tests or unmeasured else len(reports)
    exclusion = Exclusion(least_chance(clean, _MISS), 1.0 - _MISS, clean)
    return Conclusion((finding,), exclusion, len(reports), count, complete=True)


def _against(node: str, reports: Sequence[RoundReport]) -> tuple[tuple[int, int], ...]:
    """The tests behind a node: wrong results of groups it was in, else their bad ends."""
    failed = [
        (report.number, i, result)
        for report in reports
        for i, result in enumerate(report.results)
        if result.failed and node in report.groups[i]
    ]
    wrong = [each for each in failed if is_wrong(each[2])]
    return tuple((number, i) for number, i, _ in wrong or failed)


def _of_one(suspect: str, nodes: tuple[str, ...], reports: Sequence[RoundReport]) -> Finding:
    against = _against(suspect, reports)
    if chance_of(suspect, nodes, reports) > CHANCE:
        why = "digests that differ now and then meet in it, which may be chance: sound replays that"
        why += " are not always equal look the same"
        return Finding(FaultKind.UNDECIDABLE, (suspect,), 1.0 / len(nodes), against, 0, why)
    parted = any(report.stage is Stage.ISOLATE for report in reports)
    why = "alone in every failing group" if parted else "failed in both phases"
    return Finding(FaultKind.NODE, (suspect,), _ONE_OF_ONE, against, 0, why)


def _apart(reports: Sequence[RoundReport]) -> tuple[str, ...]:
    """The machines of all groups that could not be told right from wrong."""
    named = (
        node
        for report in reports
        for group, result in zip(report.groups, report.results, strict=True)
        for node in group
        if result.apart
    )
    return tuple(dict.fromkeys(named))


def _of_no_machine(
    everywhere: Sequence[RoundReport], tests: tuple[tuple[int, int], ...]
) -> Finding:
    """The same steps fail on every machine; whether in numbers, or in that nothing ran at all."""
    if all(r.nonfinite == r.failed for report in everywhere for r in report.results):
        why = (
            "the same steps give no numbers, or the same jump, on every machine: code or data, no"
            " machine"
        )
        return Finding(FaultKind.JOB, (), _EVERYWHERE, tests, 0, why)
    why = "the replay of every group fails: its command or its checkpoint, and no machine"
    return Finding(FaultKind.UNDECIDABLE, (), 0.0, tests, 0, why)
