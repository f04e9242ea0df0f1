"""A verdict on one page: what, do, if wrong, the evidence in order, what was ruled out; pure."""

from collections.abc import Iterable

from brctl.engine.incidents.verdict_store import StoredVerdict
from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.nodeset import fold
from brctl.model.verdict import Verdict
from brctl.tui.rows.row import Row, Tone, blank, heading, paragraph, row, safe, table
from brctl.tui.rows.state_letters import CONFIDENCE_TONES
from brctl.tui.rows.times import Times
from brctl.view.next_move import move_line

SIGNS = {
    Weight.CONVICTS: ("+", "decides", Tone.CRIT),
    Weight.HINTS: ("+", "hints", Tone.WARN),
    Weight.CLEARS: ("-", "against", Tone.OK),
    Weight.CONTEXT: (" ", "context", Tone.DIM),
}


def verdict_list(stored: Iterable[StoredVerdict], times: Times) -> list[Row]:
    """One line a verdict, newest first."""
    rows = [
        (
            (
                safe(s.verdict.id, 20),
                s.state.value,
                (s.verdict.confidence.value.upper(), CONFIDENCE_TONES[s.verdict.confidence]),
                s.verdict.fault.value,
                safe(fold(s.verdict.nodes) or "-", 60),
                times.of(s.verdict.decided_at),
            ),
            f"verdict:{s.verdict.id}",
        )
        for s in stored
    ]
    if not rows:
        return [row(("no verdict yet; x on a node or a job diagnoses it", Tone.DIM))]
    return table(("ID", "STATE", "CONF", "CLASS", "NODES", "DECIDED"), rows, widest=30)


def verdict_rows(stored: StoredVerdict, width: int, times: Times) -> list[Row]:
    """Everything about one verdict, down to what was not checked."""
    verdict = stored.verdict
    return [
        *_top(stored, width),
        blank(),
        heading("EVIDENCE, in order   + for  - against  . follows from another"),
        *_evidence(verdict, times),
        blank(),
        *_ruled_out(verdict, width),
        *_not_checked(verdict, width),
        *_playbook(verdict, width),
    ]


def _top(stored: StoredVerdict, width: int) -> list[Row]:
    verdict = stored.verdict
    word = verdict.confidence
    job = f"job {safe(verdict.job, 40)}" if verdict.job else ""
    step = f"at step {verdict.job_step}" if verdict.job_step is not None else ""
    head = row(
        (safe(verdict.id, 20), Tone.HEAD), f"  {verdict.fault.value}  ",
        (safe(fold(verdict.nodes) or "no node", 200), Tone.HEAD), "  confidence ",
        (f"{word.value.upper()} {verdict.probability:.2f}", CONFIDENCE_TONES[word]),
        f"  {job} {step}  {stored.state.value}",
    )  # fmt: skip
    rows = [head, *paragraph("WHAT      ", safe(verdict.title, 1000), width)]
    if verdict.called:
        rows += paragraph("WHICH     ", safe("  ".join(verdict.called), 1000), width)
    rows += paragraph("DO        ", safe(move_line(verdict), 400), width)
    if verdict.cost_if_wrong:
        rows += paragraph("IF WRONG  ", safe(verdict.cost_if_wrong, 400), width)
    return rows + (paragraph("NOTE      ", safe(stored.note, 400), width) if stored.note else [])


def _evidence(verdict: Verdict, times: Times) -> list[Row]:
    body = []
    for number, item in enumerate(verdict.evidence, start=1):
        sign, says, tone = _sign(item)
        text = safe(f"{item.subject.node} {item.text}".strip(), 400)
        cells = (str(number), (sign, tone), times.of(item.at), (says, tone), safe(item.source, 24),
                 text)  # fmt: skip
        body.append((cells, f"evidence:{verdict.id}:{number}"))
    if not body:
        return [row(("none", Tone.DIM))]
    return table(("#", "", "AT", "WEIGHT", "SOURCE", "WHAT"), body, widest=24)


def _sign(item: Evidence) -> tuple[str, str, Tone]:
    if item.role in (Role.VICTIM, Role.TEARDOWN):
        return ".", "follows", Tone.DIM
    return SIGNS[item.weight]


def raw_rows(verdict: Verdict, number: int, width: int) -> list[Row]:
    """The line or measurement one piece of evidence rests on, verbatim but harmless."""
    if not 1 <= number <= len(verdict.evidence):
        return [row((f"{verdict.id} has no evidence {number}", Tone.WARN))]
    item = verdict.evidence[number - 1]
    rows = [row((f"evidence {number} of {safe(verdict.id, 20)}", Tone.HEAD), f"  {item.kind}")]
    rows += paragraph("subject  ", safe(str(item.subject), 200), width)
    rows += paragraph("source   ", safe(item.source, 200), width)
    rows += paragraph("says     ", safe(item.text, 1000), width)
    return [
        *rows,
        heading("raw"),
        *paragraph("", safe(item.raw or "(nothing kept)", 20_000), width),
    ]


def _ruled_out(verdict: Verdict, width: int) -> list[Row]:
    rows: list[Row] = []
    for out in verdict.ruled_out:
        by = ", ".join(map(str, out.by))
        rows += paragraph("RULED OUT   ", f"{out.fault.value} by {by}: {safe(out.why, 300)}", width)
    for other in verdict.alternatives:
        where = safe(fold(other.nodes), 100)
        rows += paragraph(
            "INSTEAD     ", f"{other.fault.value} {where} {other.probability:.2f}", width
        )
    return rows


def _not_checked(verdict: Verdict, width: int) -> list[Row]:
    rows: list[Row] = []
    for gap in verdict.not_checked[:8]:
        text = f"{safe(str(gap.subject), 60)} {gap.what}: {safe(gap.why, 200)}"
        rows += paragraph("NOT CHECKED ", text, width, Tone.UNKNOWN)
    more = len(verdict.not_checked) - 8
    return rows + ([row((f"NOT CHECKED {more} more", Tone.UNKNOWN))] if more > 0 else [])


def _playbook(verdict: Verdict, width: int) -> list[Row]:
    if not verdict.playbook:
        return paragraph("PLAYBOOK    ", "none: a person must act", width)
    return paragraph("PLAYBOOK    ", f"{verdict.playbook}: f shows the plan and the guards", width)
