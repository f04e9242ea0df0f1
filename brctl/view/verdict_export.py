"""A verdict to hand on: to whoever repairs the machine, or to a ticket; secrets are taken out."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from brctl.model.evidence import Subject
from brctl.model.nodeset import fold
from brctl.model.units import utc_text
from brctl.model.verdict import Verdict
from brctl.view.documents import verdict_document
from brctl.view.html_page import facts, heading, page, table
from brctl.view.incident import escape_markdown
from brctl.view.next_move import move_line
from brctl.view.notices.page import Json, Page
from brctl.view.redact import redact_document

Row = tuple[str, ...]
_CHAIN = ("at", "node", "device", "says", "what", "raw line")


def verdict_export_page(
    verdict: Verdict, state: str, note: str, now_at: datetime, form: str
) -> Page:
    """The answer of `brctl verdict export`."""
    plain: Json = redact_document(verdict_document(verdict))
    texts: Mapping[str, str | None] = {
        "markdown": _markdown(verdict, state, now_at),
        "html": _html(verdict, state, now_at) if form == "html" else None,
    }
    body = {"verdict": plain, "state": state, "note": note or None, **texts}
    text = (texts["html"] or texts["markdown"] or "").rstrip("\n")
    return Page("VerdictExport", body, text, names=verdict.nodes)


def _facts(verdict: Verdict, state: str, now_at: datetime) -> list[tuple[str, str]]:
    return [
        ("class", verdict.fault.value),
        ("confidence", f"{verdict.confidence.value} ({verdict.probability:.2f})"),
        ("nodes", fold(verdict.nodes) or "none"),
        ("devices", ", ".join(_device(part) for part in verdict.parts) or "none"),
        ("job", verdict.job or "none"),
        ("do", move_line(verdict)),
        ("state", state),
        ("decided", utc_text(verdict.decided_at)),
        ("exported", utc_text(now_at)),
    ]


def _device(part: Subject) -> str:
    """By its name, and by the id that other tools know it by."""
    return f"{part.name} {part.device}" if part.name else part.device


def _chain(verdict: Verdict) -> Iterator[Row]:
    for item in verdict.evidence:
        at = utc_text(item.at) if item.at else "-"
        node, device = item.subject.node or "-", item.subject.called or "-"
        yield at, node, device, item.weight.value, item.text, item.raw or "-"


def _unseen(verdict: Verdict) -> list[Row]:
    return [(str(gap.subject), gap.what, gap.why) for gap in verdict.not_checked]


def _ruled_out(verdict: Verdict) -> list[Row]:
    return [(out.fault.value, out.why) for out in verdict.ruled_out]


def _html(verdict: Verdict, state: str, now_at: datetime) -> str:
    parts = [facts(_facts(verdict, state, now_at))]
    parts += [heading("Because"), table(_CHAIN, _chain(verdict))]
    parts += [heading("Ruled out"), table(("class", "why"), _ruled_out(verdict))]
    parts += [heading("Not looked at"), table(("what", "check", "why"), _unseen(verdict))]
    return page(f"Verdict {verdict.id}: {verdict.title}", parts)


def _markdown(verdict: Verdict, state: str, now_at: datetime) -> str:
    title, about = escape_markdown(verdict.title), _facts(verdict, state, now_at)
    lines = [f"# Verdict {escape_markdown(verdict.id)}: {title}", ""]
    lines += [f"- {name}: {escape_markdown(value)}" for name, value in about]
    lines += ["", *_table(_CHAIN, _chain(verdict))]
    lines += [f"- ruled out: {escape_markdown(f'{a}, {b}')}" for a, b in _ruled_out(verdict)]
    lines += [f"- not looked at: {escape_markdown(' '.join(row))}" for row in _unseen(verdict)]
    return "\n".join([*lines, ""])


def _table(header: Row, rows: Iterator[Row]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(escape_markdown, row))} |"
