"""A stack analysis for programs and for people."""

from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.hang import ParallelGroup, StackAnalysis, StackGroup
from brctl.model.nodeset import fold
from brctl.view.notices.page import Page
from brctl.view.schema import ParallelGroupDocument, StackGroupDocument
from brctl.view.text import columns, printable

_FRAMES_SHOWN = 3


def stacks_page(result: StackAnalysis, *, suspects_only: bool = False) -> Page:
    """The answer of `brctl stacks analyse` and `show`."""
    nodes = list(result.suspect_nodes)
    return Page(
        kind="StackAnalysis",
        body={
            "rounds": result.rounds,
            "groups": [_group_document(group) for group in result.groups],
            "outlier_ranks": list(result.outliers),
            "silent_ranks": list(result.silent),
            "group": _parallel(result.group) if result.group else None,
            "candidate_groups": [_parallel(group) for group in result.candidates],
            "suspect_ranks": list(result.suspect_ranks),
            "suspect_nodes": {"nodes": nodes, "folded": fold(nodes)},
            "reason": result.reason,
            "notes": list(result.notes),
        },
        text=_text(result, suspects_only=suspects_only),
        exit_code=_exit_code(result),
        names=tuple(nodes),
        next=(f"brctl dx -w {fold(nodes)}",) if nodes else (),
    )


def _exit_code(result: StackAnalysis) -> ExitCode:
    if result.suspect_nodes:
        return ExitCode.CRITICAL
    return ExitCode.UNKNOWN if result.outliers else ExitCode.OK


def _group_document(group: StackGroup) -> StackGroupDocument:
    return {
        "ranks": list(group.ranks),
        "folded_ranks": folded_ranks(group.ranks),
        "stack": list(group.stack),
        "dominant": group.dominant,
        "answered": bool(group.stack),
    }


def _parallel(group: ParallelGroup) -> ParallelGroupDocument:
    nodes = list(group.nodes)
    return {
        "axis": group.axis,
        "ranks": list(group.ranks),
        "nodes": nodes,
        "folded": fold(nodes),
        "node_count": len(nodes),
    }


def folded_ranks(ranks: tuple[int, ...]) -> str:
    """Ranks as ranges.

    Examples:
        >>> folded_ranks((0, 1, 2, 5))
        '[0-2,5]'
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    return "[" + ",".join(parts) + "]"


def _text(result: StackAnalysis, *, suspects_only: bool) -> str:
    groups = [g for g in result.groups if not (suspects_only and g.dominant)]
    rows = [
        [str(len(g.ranks)), printable(_words(g), 100), "ranks " + folded_ranks(g.ranks)]
        for g in groups
    ]
    lines = [columns(rows)] if rows else []
    lines.append(_conclusion(result))
    lines += [f"note: {printable(note)}" for note in result.notes[:8]]
    return "\n".join(lines)


def _words(group: StackGroup) -> str:
    if not group.stack:
        return "(no answer)"
    return " < ".join(group.stack[:_FRAMES_SHOWN])


def _conclusion(result: StackAnalysis) -> str:
    if not result.suspect_nodes:
        return result.reason
    count = len(result.suspect_nodes)
    word = "node" if count == 1 else "nodes"
    return f"suspect: {fold(result.suspect_nodes)} ({count} {word}): {printable(result.reason)}"
