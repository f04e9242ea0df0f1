"""A notice as the versioned document that webhooks and hook programs read."""

from brctl import API_VERSION, __version__
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.units import rfc3339
from brctl.view.documents import node_set, verdict_document
from brctl.view.notices.contents import Notice, RunFacts
from brctl.view.notices.notice import step_lines
from brctl.view.notices.page import Json, Page
from brctl.view.notices.text import clean_tree
from brctl.view.schema import VerdictBody
from brctl.view.verdict import verdict_exit

LISTED = 100
"""Lines of evidence and gaps that travel; `brctl why` has them all."""


def notification_page(notice: Notice) -> Page:
    """The document's own keys; its text is the summary."""
    verdict = verdict_document(notice.verdict) if notice.verdict else None
    left_out = _shorten(verdict) if verdict else 0
    body: dict[str, Json] = {
        "notification": {
            "event": notice.event.value,
            "state": notice.state.value,
            "dedup_key": notice.key,
            "severity": notice.severity.value,
            "summary": notice.summary,
            "at": rfc3339(notice.at),
            "class": notice.fault or None,
            "suspects": node_set(notice.nodes),
            "job": notice.job or None,
            "do": notice.do or None,
            "why": notice.why or None,
            "cost_if_wrong": notice.cost_if_wrong or None,
            "needs": notice.needs or None,
            "runbook": notice.runbook or None,
            "lines_left_out": left_out,
        },
        "verdict": verdict,
        "run": _run(notice.run) if notice.run else None,
    }
    code = verdict_exit(notice.verdict) if notice.verdict else ExitCode.OK
    steps = tuple(filter(None, (notice.do, notice.why)))
    return Page("Notification", body, notice.summary, code, next=steps)


def _shorten(verdict: VerdictBody) -> int:
    """Cut a verdict's long lists; how many lines are gone."""
    before = len(verdict["evidence"]) + len(verdict["not_checked"])
    verdict["evidence"] = verdict["evidence"][:LISTED]
    verdict["not_checked"] = verdict["not_checked"][:LISTED]
    return before - len(verdict["evidence"]) - len(verdict["not_checked"])


def notification_document(notice: Notice) -> dict[str, Json]:
    """The whole document, cleaned: it leaves the site."""
    page = notification_page(notice)
    document = {
        "apiVersion": API_VERSION,
        "kind": page.kind,
        "brctl": __version__,
        "context": notice.context,
        "generatedAt": rfc3339(notice.at),
        "exit_code": int(page.exit_code),
        **page.body,
        "errors": [],
        "next": list(page.next),
    }
    cleaned = clean_tree(document)
    assert isinstance(cleaned, dict)  # noqa: S101 - a mapping stays one
    return cleaned


def _run(facts: RunFacts) -> Json:
    run = facts.run
    return {
        "id": run.name,
        "playbook": run.playbook.name,
        "by": run.by,
        "result": facts.result,
        "exit_code": run.record.exit_code,
        "why": facts.why or None,
        "nodes": list(run.nodes),
        "folded": fold(run.nodes),
        "steps": step_lines(run.record),
    }
