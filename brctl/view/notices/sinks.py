"""The pages of `brctl notify`: who is told what, the exact bodies, what a trial came to."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from brctl.model.exit_codes import ExitCode
from brctl.view.notices.alertmanager import alert_labels, alertmanager_body
from brctl.view.notices.contents import Notice
from brctl.view.notices.page import Json, Page
from brctl.view.notices.pagerduty import pagerduty_body
from brctl.view.notices.slack import slack_webhook_body
from brctl.view.notices.webhook import notification_document
from brctl.view.text import columns, printable

KINDS = ("slack", "pagerduty", "alertmanager", "webhook")


@dataclass(frozen=True, slots=True)
class SinkRow:
    """One sink as `notify list` shows it.

    Attributes:
        wrong: What keeps it from working, in sentences; the secret itself is never shown.
    """

    kind: str
    target: str
    when: tuple[str, ...]
    failures: int
    last_failure: str
    wrong: tuple[str, ...]


def sink_list_page(rows: Sequence[SinkRow], ticket: str) -> Page:
    """The answer of `brctl notify list`; exit 1 when a sink cannot work."""
    body = {"sinks": [_row(row) for row in rows], "ticket": ticket or None}
    code = ExitCode.WARNING if any(row.wrong for row in rows) else ExitCode.OK
    names = tuple(row.kind for row in rows)
    return Page("NotifySinks", body, _text(rows, ticket), code, names, tuple(map(_row, rows)))


def _text(rows: Sequence[SinkRow], ticket: str) -> str:
    if not rows:
        return "no notifier configured: nobody is told; see `brctl help notifications`"
    table = [("SINK", "TO", "FAILED", "OPENED BY")]
    table += [
        (row.kind, printable(row.target, 60), str(row.failures), " ".join(row.when)) for row in rows
    ]
    lines = [columns(table)]
    lines += [f"wrong: {row.kind}: {printable(w, 300)}" for row in rows for w in row.wrong]
    lines += [
        f"last failure: {row.kind}: {printable(row.last_failure, 300)}"
        for row in rows
        if row.last_failure
    ]
    return "\n".join([*lines, *([f"tickets: {printable(ticket, 100)}"] if ticket else [])])


def _row(row: SinkRow) -> dict[str, Json]:
    return {
        "sink": row.kind,
        "to": row.target,
        "when": list(row.when),
        "failures": row.failures,
        "last_failure": row.last_failure or None,
        "wrong": list(row.wrong),
    }


def rendered(notice: Notice, kind: str) -> Json:
    """The exact body one kind of sink gets at first; a secret is named, not shown."""
    if kind == "pagerduty":
        return pagerduty_body(notice, "trigger", "<routing_key_file>")
    if kind == "slack":
        return slack_webhook_body(notice)
    if kind == "alertmanager":
        return alertmanager_body(notice, alert_labels(notice, None))
    return notification_document(notice)


def render_page(notice: Notice, kind: str) -> Page:
    """The answer of `brctl notify render`."""
    body = rendered(notice, kind)
    text = json.dumps(body, indent=2, ensure_ascii=False)
    return Page("RenderedNotice", {"to": kind, "body": body}, text)


def trial_page(rows: Sequence[tuple[str, str, str]]) -> Page:
    """The answer of `brctl notify test`: sink, what became of it, why; exit 69 when one failed."""
    failed = any(outcome == "failed" for _, outcome, _ in rows)
    table = [(sink, outcome, printable(why, 300)) for sink, outcome, why in rows]
    body = {"deliveries": [{"sink": s, "told": t, "why": w or None} for s, t, w in rows]}
    code = ExitCode.UNAVAILABLE if failed else ExitCode.OK
    return Page("NotifyTrial", body, columns(table), code, tuple(row[0] for row in rows))
