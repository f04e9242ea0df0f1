"""A log classification for programs and for people."""

from collections.abc import Mapping, Sequence

from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogClassification, LogEvidence, LogLead, LogVerdict
from brctl.view.next_move import move_name
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

LIKELY = 0.6
"""Below this the runner-up is nearly as likely: the answer is a warning, not an alarm."""

_SHOWN_ITEMS = 40
_SHOWN_LINES = 6


def classification_page(result: LogClassification) -> Page:
    """The answer of `brctl logs classify`."""
    overall = result.overall
    return Page(
        kind="LogClassification",
        body={
            "items": [verdict_document(item) for item in result.items],
            "overall": verdict_document(overall),
        },
        text=_text(result),
        exit_code=exit_for(overall),
        names=(overall.fault.value,),
        rows=tuple(verdict_document(item) for item in result.items),
    )


def exit_for(verdict: LogVerdict) -> ExitCode:
    """A fault is critical, a doubtful one a warning, unknown is unknown."""
    if verdict.fault is FaultClass.NO_FAULT:
        return ExitCode.OK
    if verdict.fault is FaultClass.UNKNOWN:
        return ExitCode.UNKNOWN
    return ExitCode.CRITICAL if verdict.probability >= LIKELY else ExitCode.WARNING


def verdict_document(verdict: LogVerdict) -> Mapping[str, Json]:
    """One verdict with the lines it rests on."""
    return {
        "input": verdict.name or None,
        "class": verdict.fault.value,
        "origin": verdict.origin.value,
        "culprit": verdict.culprit,
        "probability": verdict.probability,
        "action": verdict.action.value,
        "playbook": verdict.playbook or None,
        "say": verdict.say or None,
        "evidence": [_line_document(line) for line in verdict.evidence],
        "alternatives": [
            {"class": fault.value, "probability": probability}
            for fault, probability in verdict.alternatives
        ],
        "leads": [_lead_document(lead) for lead in verdict.leads],
        "notes": list(verdict.notes),
    }


def _lead_document(lead: LogLead) -> Mapping[str, Json]:
    return {
        "class": lead.fault.value,
        "probability": lead.probability,
        "source": lead.source,
        "lines": list(lead.lines),
        "why": lead.why,
        "commands": list(lead.commands),
    }


def _line_document(line: LogEvidence) -> Mapping[str, Json]:
    return {
        "role": line.role.value,
        "file": line.file,
        "line": line.line,
        "text": line.text,
        "signature": line.signature,
        "count": line.count,
    }


def _text(result: LogClassification) -> str:
    overall = result.overall
    lines = [headline(overall), *([f"why: {overall.say}"] if overall.say else [])]
    lines += [_quoted(line) for line in overall.evidence[:_SHOWN_LINES]]
    if overall.alternatives:
        rest = ", ".join(f"{f.value} {p:.2f}" for f, p in overall.alternatives)
        lines.append(f"or: {rest}")
    lines += [line for lead in overall.leads for line in _lead(lead)]
    lines += [f"note: {printable(note)}" for note in overall.notes[:_SHOWN_LINES]]
    if len(result.items) > 1:
        lines += ["", columns(_rows(result.items))]
    return "\n".join(lines)


def headline(verdict: LogVerdict) -> str:
    """Class, culprit, how sure, whose side, and what comes next, on one line."""
    culprit = f"  {printable(verdict.culprit)}" if verdict.culprit else ""
    sure = f"p={verdict.probability:.2f}  origin {verdict.origin.value}"
    return f"{verdict.fault.value}{culprit}  {sure}  do: {move_name(verdict)}"


def _quoted(line: LogEvidence) -> str:
    times = f" ({line.count} lines)" if line.count > 1 else ""
    location = f"{printable(line.file)}:{line.line}{times}"
    return f"  {line.role.value:<8} {location}  {printable(line.text.strip(), 160)}"


def _lead(lead: LogLead) -> list[str]:
    """A lead names what it goes by, the line that speaks most for it, and what would settle it."""
    by = f": {lead.why}" if lead.why else f" by {lead.source} alone"
    line = f"  {printable(lead.lines[0], 120)}" if lead.lines else ""
    head = f"lead: {lead.fault.value} {lead.probability:.2f}{by}{line}"
    return [head, *(f"  to settle it: {command}" for command in lead.commands)]


def _rows(items: Sequence[LogVerdict]) -> list[list[str]]:
    head = ["CLASS", "P", "ORIGIN", "INPUT", "CULPRIT"]
    ranked = sorted(
        items, key=lambda item: (item.fault is FaultClass.NO_FAULT, -item.probability, item.name)
    )
    rows = [
        [
            i.fault.value,
            f"{i.probability:.2f}",
            i.origin.value,
            printable(i.name),
            printable(i.culprit or ""),
        ]
        for i in ranked[:_SHOWN_ITEMS]
    ]
    if len(ranked) > _SHOWN_ITEMS:
        rows.append([f"... {len(ranked) - _SHOWN_ITEMS} more: -o json shows all"])
    return [head, *rows]
