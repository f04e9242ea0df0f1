"""Tables that are written by hand, and the words of the code each must name: no more, no less."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from brctl.library import checks, guards, jobs, log_rules, playbooks
from brctl.library.file_tables import EVENTS
from brctl.model.notice import NoticeEvent, NoticeState, PageSeverity
from brctl.playbook.guards import GUARDS
from brctl.view.notices.contents import Notice
from brctl.view.notices.webhook import notification_page

_BLOCK = re.compile(r"<!-- keys: (?P<name>[\w-]+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
_WORD = re.compile(r"`([^`]+)`")


def _notification() -> Iterable[str]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    notice = Notice(
        NoticeEvent.TEST, NoticeState.INFO, "key", "mark", PageSeverity.INFO, "c", "s", at
    )
    body = notification_page(notice).body["notification"]
    return body if isinstance(body, Mapping) else ()


KEYS: Mapping[str, Callable[[], Iterable[str]]] = {
    "check": lambda: checks._KEYS,
    "check-rule": lambda: checks._RULE_KEYS,
    "guards": lambda: GUARDS,
    "job": lambda: jobs._KEYS,
    "log-rule": lambda: log_rules._KEYS,
    "notice-event": lambda: EVENTS,
    "notification": _notification,
    "playbook": lambda: playbooks.TOP_KEYS,
    "policy": lambda: guards.POLICY_KEYS,
    "rank-variables": lambda: jobs.RESERVED_ENVIRONMENT,
    "step": lambda: playbooks.STEP_KEYS,
}
"""Each checked table by the name that a page calls it."""


def checked_tables(text: str) -> dict[str, set[str]]:
    """The words in the first column of each checked table of a page."""
    return {m["name"]: set(_first_column(m["body"])) for m in _BLOCK.finditer(text)}


def _first_column(body: str) -> Iterable[str]:
    rows = [line for line in body.splitlines() if line.startswith("| `")]
    return [word for row in rows for word in _WORD.findall(row.split("|")[1])]
