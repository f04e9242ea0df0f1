"""Alertmanager's webhook body: what it posts is read, what anybody else posts is refused."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brctl.evidence.alert_webhook import LIMIT_BYTES, BadAlertError, parse_alerts


def alert(**more: Any) -> dict[str, Any]:
    return {
        "status": "firing",
        "labels": {"alertname": "GpuXid", "instance": "gpu0412:9400", "severity": "critical"},
        "annotations": {"summary": "Xid 79 on gpu0412"},
        "startsAt": "2026-07-05T03:01:47.266742876+02:00",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus/graph",
        "fingerprint": "c4ca4238a0b92382",
        **more,
    }


def body(*alerts: Any, **more: Any) -> bytes:
    top = {
        "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0, "status": "firing",
        "receiver": "brctl", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {},
        "externalURL": "http://am:9093", "alerts": list(alerts),
    }  # fmt: skip
    return json.dumps({**top, **more}).encode()


def test_a_firing_and_a_resolved_alert_are_read() -> None:
    """Alertmanager writes nanoseconds, and the year 1 for what has not ended."""
    ended = alert(status="resolved", endsAt="2026-07-05T03:06:58Z")
    firing, resolved = parse_alerts(body(alert(), ended))
    assert (firing.name, firing.summary) == ("GpuXid", "Xid 79 on gpu0412")
    assert (firing.starts_at.hour, firing.ends_at) == (1, None)
    assert resolved.ends_at is not None


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "version 4"),
        (b'{"version": "3", "alerts": []}', "version 4"),
        (b'{"version": "4", "alerts": NaN}', "not JSON"),
        (b'{"version": "4"}', "`alerts` is not a list"),
        (b'{"version": "4", "alerts": [1]}', "alert 0 is not an object"),
        (b"[" * 100_000, "nested deeper than 8"),
        (b'{"a":' * 100_000, "nested deeper than 8"),
        (b"9" * 100_000, "not JSON"),
        (b" " * (LIMIT_BYTES + 1), "more than 1048576 bytes"),
        (body(alert(fingerprint="")), "no `fingerprint`"),
        (body(alert(fingerprint=7)), "no `fingerprint`"),
        (body(alert(status="odd")), "neither firing nor resolved"),
        (body(alert(startsAt="soon")), "`startsAt` is not a time"),
        (body(alert(startsAt=None)), "no `startsAt`"),
        (body(alert(labels={"a": {}})), "no text"),
        (body(alert(labels=[])), "not an object"),
        (body(alert(labels={str(n): "" for n in range(65)})), "more than 64 labels"),
        (body(*[alert()] * 501), "501 alerts, more than 500"),
    ],
)
def test_what_is_no_alert_is_refused_with_a_reason(raw: bytes, problem: str) -> None:
    started = time.process_time()
    with pytest.raises(BadAlertError, match=problem):
        parse_alerts(raw)
    assert time.process_time() - started < 2


def test_long_texts_are_cut() -> None:
    (found,) = parse_alerts(body(alert(annotations={"summary": "x" * 100_000})))
    assert len(found.summary) == 2000


anything = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=60)
@given(
    st.sampled_from(["status", "labels", "annotations", "startsAt", "endsAt", "fingerprint"]),
    anything,
)
def test_whatever_stands_in_a_field_it_is_read_or_refused(key: str, value: Any) -> None:
    """Nothing but a refusal ever comes out of a strange body."""
    with contextlib.suppress(BadAlertError):
        parse_alerts(body(alert(**{key: value})))
