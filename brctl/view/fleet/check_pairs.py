"""Tests between neighbours as people read them: bad pairs first, then what each path carries."""

import statistics
from collections.abc import Mapping, Sequence

from brctl.evidence.pairs import (
    BAD,
    PairResult,
    PairState,
    judge_pairs,
    path_problem,
    suspects,
    usual_delay_us,
)
from brctl.model.exit_codes import ExitCode
from brctl.model.localisation import Path
from brctl.model.nodeset import fold
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable


def pairs_page(
    results: Sequence[PairResult],
    left_out: Sequence[str],
    failing: Sequence[str],
    notes: Sequence[str],
) -> Page:
    """The answer of `brctl check pairs`; `failing` are the nodes left out because they fail."""
    states = judge_pairs(results)
    named = tuple(sorted({*failing, *suspects(results, states)}))
    documents = tuple(_document(r, s) for r, s in zip(results, states, strict=True))
    return Page(
        kind="PairTest",
        body={
            "pairs": list(documents),
            "suspects": {"nodes": list(named)},
            "left_out": list(left_out),
            "notes": [printable(note) for note in notes],
        },
        text=_text(results, states, named, notes),
        exit_code=_exit_code(states, left_out, failing),
        names=named,
        rows=documents,
        next=(f"brctl dx -w {fold(named)}",) if named else (),
    )


def _document(result: PairResult, state: PairState) -> Mapping[str, Json]:
    return {
        "nodes": list(result.pair),
        "op": result.op,
        "state": state.value,
        "reps": result.reps,
        "failed": result.failed,
        "bus_gb_per_s": result.gb_per_s,
        "why": printable(result.why) or None,
        "path": None if result.path is None else _path(result.path),
    }


def _path(path: Path) -> Mapping[str, Json]:
    return {
        "delay_us": path.delay_us,
        "there_gb_per_s": path.there_gb_per_s,
        "back_gb_per_s": path.back_gb_per_s,
    }


def _text(
    results: Sequence[PairResult],
    states: Sequence[PairState],
    named: Sequence[str],
    notes: Sequence[str],
) -> str:
    judged = list(zip(results, states, strict=True))
    delay_us = usual_delay_us(results)
    bad = [_row(result, state, delay_us) for result, state in judged if state is not PairState.OK]
    lines = [columns(bad)] if bad else []
    for op in dict.fromkeys(result.op for result in results):
        good = [r for r, s in judged if r.op == op and s is PairState.OK]
        rates = [r.gb_per_s for r in good if r.gb_per_s is not None]
        usual = f", median {statistics.median(rates):.3g} GB/s" if rates else ""
        delays = [r.path.delay_us for r in good if r.path is not None]
        delay = f", median {statistics.median(delays):.0f} us one way" if delays else ""
        lines.append(f"{op}: {len(good)} pairs every bit right{usual}{delay}")
    if any(state in BAD for state in states) and not named:
        lines.append("no node is named: a bad pair of two does not say which of them it is")
    return "\n".join([*lines, *(printable(note) for note in notes)])


def _row(result: PairResult, state: PairState, delay_us: float | None) -> Sequence[str]:
    rate = "" if result.gb_per_s is None else f"{result.gb_per_s:.3g} GB/s"
    failed = "" if not result.failed else f"{result.failed} of {result.reps} failed"
    why = result.why[:120] or path_problem(result, delay_us)
    return (state.value.upper(), "-".join(result.pair), result.op, failed, rate, why)


def _exit_code(
    states: Sequence[PairState], left_out: Sequence[str], failing: Sequence[str]
) -> ExitCode:
    if failing or PairState.WRONG in states or PairState.SILENT in states:
        return ExitCode.CRITICAL
    if left_out or not states or PairState.NOT_MEASURED in states:
        return ExitCode.UNKNOWN
    return ExitCode.WARNING if PairState.SLOW in states else ExitCode.OK
