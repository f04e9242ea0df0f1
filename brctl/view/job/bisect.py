"""A localisation as lines for people, and as documents for programs."""

from collections.abc import Mapping

from brctl.model.exit_codes import ExitCode
from brctl.model.localisation import (
    Bisection,
    Exclusion,
    FaultKind,
    Finding,
    GroupResult,
    RoundReport,
)
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, rfc3339
from brctl.view.notices.page import Json, Page
from brctl.view.schema import (
    ExclusionDocument,
    FindingDocument,
    GroupResultDocument,
    GroupTestDocument,
    RoundDocument,
)
from brctl.view.text import printable

_GROUPS_SHOWN = 6
_INTERRUPTED = "interrupted"
_SETTLED = "settled"
_SAYS = {
    FaultKind.NODE: "SUSPECT {members}",
    FaultKind.LINK: "SUSPECT link {members}",
    FaultKind.SLOW: "SUSPECT {members} (slow)",
    FaultKind.LEAF: "SUSPECT uplink of leaf {members}",
    FaultKind.LEAF_PAIR: "SUSPECT path between leaves {members}",
    FaultKind.PAIR: "SUSPECT pair {members} (interaction)",
    FaultKind.SCALE: "SUSPECT scale: no node, no link",
    FaultKind.JOB: "NO MACHINE: every group shows it",
    FaultKind.NONE: "not reproduced",
    FaultKind.UNDECIDABLE: "UNDECIDABLE {members}",
}
_FOUND = frozenset(FaultKind) - {FaultKind.NONE, FaultKind.UNDECIDABLE}


def exit_code(result: Bisection) -> ExitCode:
    """0 clean, 2 found, 3 not reproduced or undecidable, 130 interrupted."""
    if result.ended == _INTERRUPTED:
        return ExitCode.INTERRUPTED
    kinds = {finding.kind for finding in result.conclusion.findings}
    if kinds & _FOUND:
        return ExitCode.CRITICAL
    doubtful = (
        FaultKind.UNDECIDABLE in kinds
        or result.ended != _SETTLED
        or result.unexplained
        or result.conclusion.exclusion.untested
    )
    return ExitCode.UNKNOWN if doubtful else ExitCode.OK


def bisection_page(result: Bisection, *, with_rounds: bool) -> Page:
    """The answer of `brctl nccl bisect`."""
    lines = [head_line(result)] if with_rounds else []
    lines += [line for report in result.rounds if with_rounds for line in round_lines(report)]
    lines += [*_verdict_lines(result), _exclusion_line(result), _cost_line(result)]
    named = _nodes_named(result)
    return Page(
        kind="Bisection",
        body=bisection_document(result),
        text="\n".join(lines),
        exit_code=exit_code(result),
        names=named,
        next=(f"brctl dx -w {fold(named)}",) if named else (),
    )


def _nodes_named(result: Bisection) -> tuple[str, ...]:
    kinds = (FaultKind.NODE, FaultKind.SLOW, FaultKind.PAIR, FaultKind.LINK)
    known = set(result.nodes)
    return tuple(
        name.partition("/")[0]
        for finding in result.conclusion.findings
        if finding.kind in kinds
        for name in finding.members
        if name in known
    )


def head_line(result: Bisection) -> str:
    """What is being searched, and how."""
    size = f"{result.size_bytes / (1 << 20):g} MiB"
    return (
        f"{result.id}  {result.op} {size}, {len(result.nodes)} nodes, {result.reps} repetitions"
        f" a set-up, budget {describe_duration(result.budget_s)}, runner {result.runner}"
    )


def round_lines(report: RoundReport) -> list[str]:
    """One round: how many groups passed, and the ones that did not."""
    bad = [
        (group, result)
        for group, result in zip(report.groups, report.results, strict=True)
        if result.failed or result.failed is None
    ]
    passed = len(report.groups) - len(bad)
    sizes = sorted({len(group) for group in report.groups})
    span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]}-{sizes[-1]}"
    line = (
        f"{report.number:<3}{report.stage.value:<8} {len(report.groups)} groups of {span}:"
        f" {passed} ok{_speeds(report)}  {describe_duration(report.seconds)}"
    )
    lines = [line]
    lines += [f"     {fold(g)}  {_result_word(r)}" for g, r in bad[:_GROUPS_SHOWN]]
    if len(bad) > _GROUPS_SHOWN:
        lines.append(f"     and {len(bad) - _GROUPS_SHOWN} more")
    if report.suspects:
        shown = ", ".join(f"{name} {chance:.2f}" for name, chance in report.suspects)
        lines.append(f"     suspects: {shown}")
    lines += [f"     {printable(note)}" for note in report.notes[:_GROUPS_SHOWN]]
    return lines


def _speeds(report: RoundReport) -> str:
    speeds = sorted(r.busbw_gb_per_s for r in report.results if r.busbw_gb_per_s is not None)
    if not speeds:
        return ""
    return f", {speeds[0]:.3g} to {speeds[-1]:.3g} GB/s, median {speeds[len(speeds) // 2]:.3g}"


def _result_word(result: GroupResult) -> str:
    if result.failed is None:
        return "NOT MEASURED"
    if result.silent:
        return "NO ANSWER"
    return f"FAILED {result.failed} of {result.reps}"


def _verdict_lines(result: Bisection) -> list[str]:
    lines = []
    for finding in result.conclusion.findings:
        members = _members_text(result, finding)
        say = _SAYS[finding.kind].format(members=members).strip()
        chance = f"   probability {finding.posterior:.4f}"
        tests = f", {len(finding.tests)} tests" if finding.tests else ""
        why = f"   {finding.why}" if finding.why else ""
        lines.append(f"{say}{chance}{tests}{why}")
    return lines


def _members_text(result: Bisection, finding: Finding) -> str:
    known = set(result.nodes)
    if finding.members and all(name in known for name in finding.members):
        return fold(finding.members)
    return " and ".join(printable(name) for name in finding.members)


def _exclusion_line(result: Bisection) -> str:
    excluded = result.conclusion.exclusion
    if not excluded.clean_repetitions:
        return "nothing is excluded: no group passed cleanly"
    text = (
        f"excluded at {100 * excluded.confidence:.0f} %: other nodes that fail"
        f" {100 * excluded.failure_probability:.0f} % of repetitions or more"
    )
    if excluded.untested:
        text += f"; never seen to pass: {fold(excluded.untested)}"
    return text


def _cost_line(result: Bisection) -> str:
    done = result.conclusion
    text = f"{done.rounds} rounds, {done.node_tests} node-tests"
    text += f", {describe_duration(result.seconds)}"
    return text if result.ended == _SETTLED else f"{text}; ended early: {printable(result.ended)}"


def bisection_document(result: Bisection) -> Mapping[str, Json]:
    """The keys of a Bisection document."""
    done = result.conclusion
    return {
        "id": result.id,
        "started_at": rfc3339(result.started_at),
        "op": result.op,
        "size_bytes": result.size_bytes,
        "reps": result.reps,
        "runner": result.runner,
        "seed": result.seed,
        "budget_seconds": result.budget_s,
        "tested": {"nodes": list(result.nodes), "folded": fold(result.nodes)},
        "verdicts": [_finding_document(result, finding) for finding in done.findings],
        "excluded": _exclusion_document(done.exclusion),
        "rounds": done.rounds,
        "node_tests": done.node_tests,
        "seconds": round(result.seconds, 3),
        "complete": result.ended == _SETTLED,
        "ended": result.ended,
        "notes": list(result.notes),
        "round_log": [round_document(report) for report in result.rounds],
    }


def _exclusion_document(excluded: Exclusion) -> ExclusionDocument:
    return {
        "failure_probability_at_least": round(excluded.failure_probability, 6),
        "confidence": excluded.confidence,
        "clean_repetitions": excluded.clean_repetitions,
        "never_passed": list(excluded.untested),
    }


def _finding_document(result: Bisection, finding: Finding) -> FindingDocument:
    reports = {report.number: report for report in result.rounds}
    tests: list[GroupTestDocument] = [
        {
            "round": number,
            "group": list(reports[number].groups[position]),
            **_result_document(reports[number].results[position]),
        }
        for number, position in finding.tests
    ]
    return {
        "kind": finding.kind.value,
        "members": list(finding.members),
        "posterior": round(finding.posterior, 6),
        "smallest_size": finding.smallest_size or None,
        "why": finding.why or None,
        "tests": tests,
    }


def _result_document(result: GroupResult) -> GroupResultDocument:
    return {
        "reps": result.reps,
        "failed": result.failed,
        "answered": None if result.failed is None else not result.silent,
        "busbw_gb_per_s": result.busbw_gb_per_s,
    }


def round_document(report: RoundReport) -> RoundDocument:
    """One round; `-o ndjson` prints one such object as soon as the round is over."""
    return {
        "round": report.number,
        "stage": report.stage.value,
        "seconds": round(report.seconds, 3),
        "groups": [list(group) for group in report.groups],
        "results": [_result_document(result) for result in report.results],
        "suspects": [
            {"node": name, "posterior": round(chance, 6)} for name, chance in report.suspects
        ],
        "notes": list(report.notes),
    }
