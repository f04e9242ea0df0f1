"""An unknown cause still has leads: the lines that stand out, and what their words make likely."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brctl.evidence.logs.claim import WITHDRAWN
from brctl.evidence.logs.endings import SOURCE as ENDING
from brctl.evidence.logs.unexplained import UNEXPLAINED
from brctl.evidence.logs.words.unusual import UnusualLine, rank_unusual
from brctl.evidence.logs.words.word_model import QUIET, Heard, WordModel
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogEvidence, LogLead, LogVerdict

SIGNATURE = "unusual"
"""The name under which a line is shown that stands out and that no rule read."""

WORDS = "words"
"""How a lead of the model of words is told from one that a line or an ending names."""

WORTH_NAMING = 0.1
"""A lead less likely than this only distracts."""

_LEADS = 3
_SHOWN = 5
_QUOTED = 400


def with_leads(
    verdict: LogVerdict, lines: Mapping[int, str], heard: Heard, file: str = ""
) -> LogVerdict:
    """The verdict with leads and the most unusual lines first; a known class stays as it is.

    Args:
        verdict: What the rules say.
        lines: Lines of the log by number, its two ends where it is long.
        heard: What the model makes of them.
        file: The input's name, for the lines shown.
    """
    if verdict.fault is not FaultClass.UNKNOWN or not lines:
        return verdict
    shown = verdict.evidence
    if not any(line.role is Role.ROOT for line in shown):
        shown = _unusual_first(shown, _unusual(lines, heard.model, file))
    return replace(verdict, leads=_joined(verdict.leads, leads_of(heard)), evidence=shown)


def with_words(verdict: LogVerdict, heard: Heard, file: str = "") -> LogVerdict:
    """The verdict with the lines whose words speak for its fault, where no rule names one.

    Args:
        verdict: What rules and words say together.
        heard: What the model makes of the lines.
        file: The input's name, for the lines shown.
    """
    if verdict.fault in QUIET or any(line.role is Role.ROOT for line in verdict.evidence):
        return verdict
    share = heard.shares.get(verdict.fault, 0.0)
    spoken = tuple(
        LogEvidence(
            Role.ROOT, file, line.number, _quoted(verdict.fault, share, line.text), WORDS, 1
        )
        for line in heard.speaking(verdict.fault)
    )
    return replace(verdict, evidence=(*spoken, *verdict.evidence))


def _claims_by_words(item: LogVerdict) -> bool:
    return any(line.role is Role.ROOT and line.signature == WORDS for line in item.evidence)


def _doubted_by_words(overall: LogVerdict, items: Sequence[LogVerdict]) -> LogVerdict:
    """No answer over all inputs hides that words claim a fault in one of them: it is a lead."""
    claims = [item for item in items if _claims_by_words(item)]
    if not claims or overall.fault not in QUIET:
        return overall
    leads = {
        item.fault: LogLead(
            item.fault,
            item.probability,
            WORDS,
            tuple(line.text for line in item.evidence if line.signature == WORDS),
        )
        for item in claims
    }
    well = overall.fault is FaultClass.NO_FAULT
    others = tuple(lead for lead in overall.leads if lead.fault not in leads)
    return replace(
        overall,
        fault=FaultClass.UNKNOWN,
        probability=WITHDRAWN if well else overall.probability,
        leads=(*leads.values(), *others)[:_LEADS],
    )


def _quoted(fault: FaultClass, share: float, text: str) -> str:
    return f"{fault} {share:.2f} by words alone: {text.strip()}"[:_QUOTED]


def _joined(first: Sequence[LogLead], second: Sequence[LogLead]) -> tuple[LogLead, ...]:
    """Leads by how the log ends, then those of weak lines and of words by their probability.

    A class is named once.
    """
    known = {lead.fault for lead in first}
    ends = [lead for lead in first if lead.source == ENDING]
    others = [lead for lead in first if lead.source != ENDING]
    others += [lead for lead in second if lead.fault not in known]
    return (*ends, *sorted(others, key=lambda lead: -lead.probability))[:_LEADS]


def with_leads_of(overall: LogVerdict, items: Sequence[LogVerdict]) -> LogVerdict:
    """The verdict over all inputs with what leads those have that it does not explain either."""
    overall = _doubted_by_words(overall, items)
    searched = [item for item in items if item.leads or _odd_lines(item)]
    if overall.fault is not FaultClass.UNKNOWN or not searched:
        return _with_words_of(overall, items)
    by_class: dict[FaultClass, list[LogLead]] = {}
    for item in searched:
        for lead in item.leads:
            if lead.source != WORDS:
                continue
            by_class.setdefault(lead.fault, []).append(lead)
    joined = [
        replace(found[0], probability=round(sum(f.probability for f in found) / len(searched), 3))
        for found in by_class.values()
    ]
    leads = sorted(joined, key=lambda lead: (-lead.probability, lead.fault.value))[:_LEADS]
    odd = tuple(line for item in searched for line in _odd_lines(item))[:_SHOWN]
    shown = overall.evidence
    if not any(line.role is Role.ROOT for line in shown):
        shown = _unusual_first(shown, odd)
    return replace(overall, leads=_joined(overall.leads, leads), evidence=shown)


def _with_words_of(overall: LogVerdict, items: Sequence[LogVerdict]) -> LogVerdict:
    """The verdict with the lines of the inputs in which words alone speak for its fault."""
    if any(line.role is Role.ROOT for line in overall.evidence):
        return overall
    agreeing = [item for item in items if item.fault is overall.fault]
    lines = [line for item in agreeing for line in item.evidence if line.signature == WORDS]
    return replace(overall, evidence=(*lines[:_SHOWN], *overall.evidence))


def _odd_lines(item: LogVerdict) -> tuple[LogEvidence, ...]:
    names = (SIGNATURE, UNEXPLAINED.name)
    return tuple(line for line in item.evidence if line.signature in names)


def leads_of(heard: Heard) -> tuple[LogLead, ...]:
    """The classes that the words make likely, likeliest first."""
    ranked = sorted(heard.shares.items(), key=lambda item: (-item[1], item[0].value))
    likely = [(f, share) for f, share in ranked if f not in QUIET and share >= WORTH_NAMING]
    return tuple(
        LogLead(
            fault,
            round(share, 3),
            WORDS,
            tuple(line.text.strip()[:_QUOTED] for line in heard.speaking(fault)),
        )
        for fault, share in likely[:_LEADS]
    )


def _unusual_first(
    shown: Sequence[LogEvidence], odd: Sequence[LogEvidence]
) -> tuple[LogEvidence, ...]:
    """Unusual lines first, each once; a victim stays among the victims."""
    known = {(line.file, line.line): line for line in shown}
    places = [(line.file, line.line) for line in odd]
    first = [known.get(place, line) for place, line in zip(places, odd, strict=True)]
    first = [line for line in first if line.role is Role.CONTEXT]
    return (*first, *(line for line in shown if line not in first))


def _unusual(lines: Mapping[int, str], model: WordModel, file: str) -> tuple[LogEvidence, ...]:
    numbers = tuple(lines)
    found = rank_unusual(tuple(lines.values()), model, _SHOWN)
    return tuple(_shown_line(line, numbers[line.number - 1], file) for line in found)


def _shown_line(line: UnusualLine, number: int, file: str) -> LogEvidence:
    text = line.text[:_QUOTED]
    return LogEvidence(Role.CONTEXT, file, number, text, SIGNATURE, line.alike)
