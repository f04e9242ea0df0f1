"""A notice as PagerDuty Events API v2 requests."""

from brctl.model.nodeset import fold
from brctl.model.notice import KEY_LIMIT, Memory, NoticeState
from brctl.model.units import rfc3339
from brctl.view.notices.contents import Notice
from brctl.view.notices.page import Json
from brctl.view.notices.text import clean

SUMMARY = 1024
FIELD = 255


def pagerduty_actions(notice: Notice, memory: Memory | None) -> tuple[str, ...]:
    """The event actions this notice means, given what PagerDuty was told before.

    A trigger on an incident that somebody acknowledged notifies nobody. So what must be heard
    again closes the incident first.
    """
    known = memory is not None and memory.is_open
    if notice.state is NoticeState.FIRING:
        taken = known and memory is not None and memory.state is NoticeState.ACKNOWLEDGED
        return ("resolve", "trigger") if taken and notice.pages_again else ("trigger",)
    if not known:
        return ()
    return {NoticeState.ACKNOWLEDGED: ("acknowledge",), NoticeState.RESOLVED: ("resolve",)}.get(
        notice.state, ()
    )


def pagerduty_body(notice: Notice, action: str, routing_key: str) -> dict[str, Json]:
    """One request; only a trigger carries a payload."""
    body: dict[str, Json] = {
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": clean(notice.key, KEY_LIMIT),
    }
    if action == "trigger":
        body |= {"client": "brctl", "payload": _payload(notice)}
        if notice.runbook:
            body["links"] = [{"href": clean(notice.runbook, 1000), "text": "runbook"}]
    return body


def _payload(notice: Notice) -> dict[str, Json]:
    payload: dict[str, Json] = {
        "summary": clean(f"[{notice.context}] {notice.summary}", SUMMARY),
        "source": clean(fold(notice.nodes) or notice.subject or notice.context, FIELD),
        "severity": notice.severity.value,
        "timestamp": rfc3339(notice.at),
        "component": clean(" ".join(notice.devices), FIELD),
        "group": clean(f"job-{notice.job}" if notice.job else "", FIELD),
        "class": clean(notice.fault, FIELD),
        "custom_details": _details(notice),
    }
    return {key: value for key, value in payload.items() if value not in ("", {})}


def _details(notice: Notice) -> dict[str, Json]:
    details = {
        "do": notice.do, "why": notice.why, "cost_if_wrong": notice.cost_if_wrong,
        "needs": notice.needs, "more": "\n".join(notice.details[:10]),
    }  # fmt: skip
    return {key: "\n".join(map(clean, text.split("\n"))) for key, text in details.items() if text}
