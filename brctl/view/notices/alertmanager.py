"""A notice as an alert of Alertmanager's v2 API."""

from collections.abc import Mapping
from datetime import timedelta

from brctl.model.nodeset import fold
from brctl.model.notice import Memory, NoticeState
from brctl.model.units import rfc3339
from brctl.view.notices.contents import Notice
from brctl.view.notices.page import Json
from brctl.view.notices.text import clean

HOLDS = timedelta(hours=24)
"""Without an end Alertmanager resolves an alert by itself after five minutes."""

LABEL, ANNOTATION = 200, 1000
ALERT = "BrctlVerdict"


def alert_labels(notice: Notice, memory: Memory | None) -> dict[str, str]:
    """The labels of a fault's alert.

    They are its identity, so while it is open they stay those it was first told with, whatever
    the newest verdict is called.
    """
    if memory is not None and memory.is_open:
        return dict(memory.ref)
    labels = {
        "alertname": ALERT,
        "severity": notice.severity.value,
        "class": notice.fault,
        "context": notice.context,
        "node": fold(notice.nodes),
        "job": notice.job,
        "verdict": notice.verdict.id if notice.verdict else "",
    }
    return {key: clean(text, LABEL) for key, text in labels.items() if text}


def alertmanager_body(notice: Notice, labels: Mapping[str, str]) -> list[Json]:
    """The body of POST /api/v2/alerts; a resolve ends now, everything else in HOLDS."""
    ends_at = notice.at if notice.state is NoticeState.RESOLVED else notice.at + HOLDS
    annotations = {
        "summary": notice.summary,
        "do": notice.do,
        "why": notice.why,
        "needs": notice.needs,
        "runbook_url": notice.runbook,
    }
    return [
        {
            "labels": dict(labels),
            "annotations": {
                key: clean(text, ANNOTATION) for key, text in annotations.items() if text
            },
            "endsAt": rfc3339(ends_at),
        }
    ]
