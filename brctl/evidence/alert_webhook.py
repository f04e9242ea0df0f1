"""Read what Alertmanager posts to a webhook, version 4; whoever posts it is not trusted."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from brctl.model.alert import Alert
from brctl.model.units import parse_rfc3339

LIMIT_BYTES = 1 << 20
DEPTH = 8
ALERTS, LABELS, NAME, VALUE = 500, 64, 200, 2000
VERSION = "4"
_NEVER = 1  # the year Alertmanager writes for an alert that has not ended


class BadAlertError(Exception):
    """The sender's fault: what it sent is not what Alertmanager sends."""


def parse_alerts(raw: bytes) -> tuple[Alert, ...]:
    """The alerts of a body.

    Raises:
        BadAlertError: It is too large, too deep, or not what Alertmanager posts; says what.
    """
    if len(raw) > LIMIT_BYTES:
        raise BadAlertError(f"more than {LIMIT_BYTES} bytes")
    document = _decoded(raw)
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise BadAlertError(f"not an Alertmanager webhook body of version {VERSION}")
    alerts = document.get("alerts")
    if not isinstance(alerts, list):
        raise BadAlertError("`alerts` is not a list")
    if len(alerts) > ALERTS:
        raise BadAlertError(f"{len(alerts)} alerts, more than {ALERTS}")
    return tuple(_alert(number, alert) for number, alert in enumerate(alerts))


def _decoded(raw: bytes) -> Any:
    """Parsed only when it is shallow: the parser's own stack ends before our patience does."""
    _refuse_depth(raw)
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise BadAlertError(f"not JSON: {str(exc)[:100]}") from exc


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _refuse_depth(raw: bytes) -> None:
    depth, in_text, escaped = 0, False, False
    for byte in raw:
        if in_text:
            in_text = escaped or byte != 0x22
            escaped = byte == 0x5C and not escaped
        elif byte == 0x22:
            in_text = True
        elif byte in b"[{":
            depth += 1
            if depth > DEPTH:
                raise BadAlertError(f"nested deeper than {DEPTH}")
        elif byte in b"]}":
            depth -= 1


def _alert(number: int, data: object) -> Alert:
    if not isinstance(data, dict):
        raise BadAlertError(f"alert {number} is not an object")
    fingerprint = data.get("fingerprint")
    if not isinstance(fingerprint, str) or not 0 < len(fingerprint) <= NAME:
        raise BadAlertError(f"alert {number} has no `fingerprint`")
    status = data.get("status")
    if status not in ("firing", "resolved"):
        raise BadAlertError(f"alert {number}: `status` is neither firing nor resolved")
    ends_at = _moment(number, data, "endsAt")
    starts_at = _moment(number, data, "startsAt")
    if starts_at is None:
        raise BadAlertError(f"alert {number} has no `startsAt`")
    return Alert(
        fingerprint=fingerprint,
        labels=_texts(number, data, "labels"),
        annotations=_texts(number, data, "annotations"),
        starts_at=starts_at,
        ends_at=(ends_at or starts_at) if status == "resolved" else None,
    )


def _moment(number: int, data: Mapping[str, object], key: str) -> datetime | None:
    text = data.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise BadAlertError(f"alert {number}: `{key}` is not a time")
    try:
        moment = parse_rfc3339(text[:60])
    except (ValueError, OverflowError) as exc:
        raise BadAlertError(f"alert {number}: `{key}` is not a time") from exc
    return None if moment.year == _NEVER else moment


def _texts(number: int, data: Mapping[str, object], key: str) -> dict[str, str]:
    """Labels or annotations; longer texts are cut, for what they say is only shown."""
    found = data.get(key, {})
    if not isinstance(found, dict):
        raise BadAlertError(f"alert {number}: `{key}` is not an object")
    if len(found) > LABELS:
        raise BadAlertError(f"alert {number}: more than {LABELS} {key}")
    wrong = [name for name, value in found.items() if not isinstance(value, str)]
    if wrong:
        raise BadAlertError(f"alert {number}: `{key}` holds something that is no text")
    return {name[:NAME]: value[:VALUE] for name, value in found.items()}
