"""Sinks over real HTTP: one page per fault, one message that moves, and nothing that gets lost."""

import hashlib
import hmac
import json
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from brctl.library.notify_settings import NotifySettings, Sink
from brctl.model.notice import NoticeEvent, NoticeState
from brctl.notify.notifier import PAGING, DeliveryState, Notifier
from brctl.notify.sinks import SIGNATURE
from brctl.view.notices.contents import Notice
from brctl.view.notices.notice import advanced_notice, verdict_notice
from tests.fakes.http_sink import CLOSE, HANG, HttpSink, Reply, http_sink
from tests.fakes.run_context import NOON, example_verdict
from tests.own_processes import runs
from tests.timeouts import TIMEOUT_S

ALL = frozenset(NoticeEvent)
FIRST = verdict_notice(example_verdict(), "prod-a", NOON)
ACK = replace(FIRST, event=NoticeEvent.RUN_STARTED, state=NoticeState.ACKNOWLEDGED, mark="start")
ADVANCED = advanced_notice("prod-a", FIRST.key, "demo", 56, NOON)
STUCK = replace(FIRST, event=NoticeEvent.RUN_NEEDS_HUMAN, mark="stuck", pages_again=True)


@pytest.fixture
def server() -> Iterator[HttpSink]:
    with http_sink() as sink:
        yield sink


def secret(folder: Path, text: str = "s3cr3t-value", mode: int = 0o600) -> Path:
    path = folder / f"secret-{len(list(folder.iterdir()))}"
    path.write_text(text + "\n")
    path.chmod(mode)
    return path


def notifier(folder: Path, *sinks: Sink, deadline_s: float = TIMEOUT_S) -> Notifier:
    """A new object each time: what is remembered is remembered on disk."""
    return Notifier(NotifySettings(sinks, deadline_s), folder / "state", lambda: NOON)


def pagerduty(folder: Path, server: HttpSink, **more: Any) -> Sink:
    when = frozenset({NoticeEvent.VERDICT_HIGH, NoticeEvent.RUN_NEEDS_HUMAN})
    return replace(Sink("pagerduty", when, server.url, secret(folder)), **more)


def notify(folder: Path, sink: Sink, *notices: Notice) -> list[DeliveryState]:
    return [notifier(folder, sink).notify(notice)[0].state for notice in notices]


def test_a_fault_is_one_page_from_trigger_to_resolve(tmp_path: Path, server: HttpSink) -> None:
    """Repeats, also from other processes, add nothing; every request carries the same key."""
    sink = pagerduty(tmp_path, server)
    reported = notify(tmp_path, sink, FIRST, FIRST, ACK, ACK, FIRST, ADVANCED, ADVANCED)
    s, k = DeliveryState.SENT, DeliveryState.KNOWN
    assert reported == [s, k, s, k, k, s, k]
    sent = [(body["event_action"], body["dedup_key"]) for body in server.bodies]
    key = "brctl/prod-a/demo/gpu-lost"
    assert sent == [("trigger", key), ("acknowledge", key), ("resolve", key)]
    assert server.bodies[0]["routing_key"] == "s3cr3t-value"


def test_what_was_never_triggered_is_neither_acknowledged_nor_resolved(
    tmp_path: Path, server: HttpSink
) -> None:
    assert (
        notify(tmp_path, pagerduty(tmp_path, server), ACK, ADVANCED) == [DeliveryState.UNASKED] * 2
    )
    assert server.requests == []


def test_the_same_fault_after_its_end_is_a_new_page(tmp_path: Path, server: HttpSink) -> None:
    notify(tmp_path, pagerduty(tmp_path, server), FIRST, ADVANCED, FIRST)
    assert [b["event_action"] for b in server.bodies] == ["trigger", "resolve", "trigger"]


def test_a_run_that_needs_a_human_pages_again_after_the_acknowledgement(
    tmp_path: Path, server: HttpSink
) -> None:
    """A trigger on an acknowledged incident notifies nobody."""
    notify(tmp_path, pagerduty(tmp_path, server), FIRST, ACK, STUCK)
    actions = [body["event_action"] for body in server.bodies]
    assert actions == ["trigger", "acknowledge", "resolve", "trigger"]


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"fresh": True}, DeliveryState.SENT),
        ({"at": NOON + timedelta(hours=25)}, DeliveryState.SENT),
        ({"at": NOON + timedelta(hours=1)}, DeliveryState.KNOWN),
    ],
)
def test_a_repeat_is_told_when_it_was_gone_or_lasts_for_a_day(
    tmp_path: Path, server: HttpSink, change: dict[str, Any], reported: DeliveryState
) -> None:
    """Somebody may have closed the page by hand; silence would then last for ever."""
    sink = pagerduty(tmp_path, server)
    assert notify(tmp_path, sink, FIRST, replace(FIRST, **change))[1] is reported


def test_what_could_not_be_told_is_counted_and_told_by_the_next_repeat(
    tmp_path: Path, server: HttpSink
) -> None:
    server.always = Reply(500)
    sink = pagerduty(tmp_path, server)
    (failed,) = notifier(tmp_path, sink, deadline_s=4.0).notify(FIRST)
    assert (failed.state, failed.sink) == (DeliveryState.FAILED, "pagerduty")
    assert len(server.requests) > 1
    assert notifier(tmp_path, sink).ledger.failures()["pagerduty"].count == 1
    server.always = Reply(202)
    assert notify(tmp_path, sink, FIRST) == [DeliveryState.SENT]


@pytest.mark.parametrize("manner", [HANG, CLOSE])
def test_a_dead_sink_costs_no_more_than_the_deadline_and_hides_no_other(
    tmp_path: Path, server: HttpSink, manner: str
) -> None:
    server.always = Reply(manner=manner)
    with http_sink() as well:
        dead, alive = pagerduty(tmp_path, server), Sink("webhook", ALL, well.url)
        started = time.monotonic()
        reported = notifier(tmp_path, dead, alive, deadline_s=5.0).notify(FIRST)
        assert time.monotonic() - started < TIMEOUT_S
        assert [d.state for d in reported] == [DeliveryState.FAILED, DeliveryState.SENT]


def test_a_memory_that_cannot_be_written_loses_no_page(tmp_path: Path, server: HttpSink) -> None:
    """Better told twice than not at all."""
    (tmp_path / "state").write_text("a file where the folder should be")
    sink = pagerduty(tmp_path, server)
    assert notify(tmp_path, sink, FIRST, FIRST) == [DeliveryState.SENT, DeliveryState.SENT]


def test_a_damaged_memory_is_set_aside(tmp_path: Path, server: HttpSink) -> None:
    sink = pagerduty(tmp_path, server)
    notify(tmp_path, sink, FIRST)
    database = tmp_path / "state" / "notify" / "notify.sqlite3"
    database.write_bytes(b"not a database, for sure" * 100)
    assert notify(tmp_path, sink, FIRST, FIRST) == [DeliveryState.SENT, DeliveryState.KNOWN]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_others_can_read_is_not_used(tmp_path: Path, server: HttpSink, mode: int) -> None:
    sink = replace(pagerduty(tmp_path, server), secret_file=secret(tmp_path, mode=mode))
    (failed,) = notifier(tmp_path, sink).notify(FIRST)
    assert "others may read or write this secret" in failed.why
    assert server.requests == []


def slack(folder: Path, server: HttpSink) -> Sink:
    return Sink("slack", ALL, server.url, token_file=secret(folder), channel="training-oncall")


def test_one_slack_message_moves_with_the_incident(tmp_path: Path, server: HttpSink) -> None:
    """A new message, then updates of it, each with a line in its thread."""
    server.always = Reply(200, b'{"ok": true, "channel": "C7", "ts": "17.5"}')
    notify(tmp_path, slack(tmp_path, server), FIRST, FIRST, ACK, ADVANCED)
    assert [r.path for r in server.requests] == [
        "/chat.postMessage", "/chat.postMessage", "/chat.update", "/chat.postMessage",
        "/chat.update", "/chat.postMessage",
    ]  # fmt: skip
    first, thread, second, _, third, _ = server.bodies
    assert first["channel"] == "training-oncall"
    assert (thread["channel"], thread["thread_ts"]) == ("C7", "17.5")
    assert (second["channel"], second["ts"]) == ("C7", "17.5")
    assert "acknowledged" in second["blocks"][0]["text"]["text"]
    assert "resolved" in third["blocks"][0]["text"]["text"]
    assert {r.headers["Authorization"] for r in server.requests} == {"Bearer s3cr3t-value"}


def test_slack_says_no_with_status_200(tmp_path: Path, server: HttpSink) -> None:
    server.always = Reply(200, b'{"ok": false, "error": "invalid_auth"}')
    (failed,) = notifier(tmp_path, slack(tmp_path, server)).notify(FIRST)
    assert (failed.state, failed.why) == (DeliveryState.FAILED, "chat.postMessage: invalid_auth")


def test_a_deleted_slack_message_is_posted_anew(tmp_path: Path, server: HttpSink) -> None:
    good = Reply(200, b'{"ok": true, "channel": "C7", "ts": "17.5"}')
    server.always = good
    notify(tmp_path, slack(tmp_path, server), FIRST)
    server.replies = [Reply(200, b'{"ok": false, "error": "message_not_found"}')]
    assert notify(tmp_path, slack(tmp_path, server), ACK) == [DeliveryState.SENT]
    assert [r.path for r in server.requests][2:4] == ["/chat.update", "/chat.postMessage"]


def test_a_slack_webhook_is_a_secret_url(tmp_path: Path, server: HttpSink) -> None:
    """Its path is the secret: no error may quote it."""
    sink = Sink("slack", ALL, secret_file=secret(tmp_path, f"{server.url}/services/T0/B0/XyZ"))
    assert notify(tmp_path, sink, FIRST) == [DeliveryState.SENT]
    assert server.requests[0].path == "/services/T0/B0/XyZ"
    server.always = Reply(404, b"no_service")
    (failed,) = notifier(tmp_path, sink).notify(ACK)
    assert failed.state is DeliveryState.FAILED
    assert "XyZ" not in failed.why


def test_an_alert_keeps_its_labels_until_it_ends(tmp_path: Path, server: HttpSink) -> None:
    """Labels are an alert's identity: a newer verdict of the same fault must not open another."""
    sink = Sink("alertmanager", frozenset({NoticeEvent.VERDICT_HIGH}), server.url)
    newer = verdict_notice(replace(example_verdict(), id="V-2"), "prod-a", NOON)
    assert notify(tmp_path, sink, FIRST, newer, FIRST, ADVANCED) == [DeliveryState.SENT] * 4
    alerts = [body[0] for body in server.bodies]
    assert {r.path for r in server.requests} == {"/api/v2/alerts"}
    assert len({json.dumps(a["labels"]) for a in alerts}) == 1
    assert alerts[0]["labels"] == {
        "alertname": "BrctlVerdict", "severity": "critical", "class": "gpu-lost",
        "context": "prod-a", "node": "n3", "job": "demo", "verdict": "V-1",
    }  # fmt: skip
    ends = [datetime.fromisoformat(a["endsAt"]) - NOON for a in alerts]
    assert ends == [timedelta(hours=24)] * 3 + [timedelta()]


def test_a_webhook_proves_who_sent_it(tmp_path: Path, server: HttpSink) -> None:
    sink = Sink("webhook", ALL, f"{server.url}/hook", secret(tmp_path, "key-of-the-site"))
    notify(tmp_path, sink, FIRST)
    (request,) = server.requests
    wanted = hmac.new(b"key-of-the-site", request.body, hashlib.sha256).hexdigest()
    assert request.headers[SIGNATURE] == f"sha256={wanted}"
    assert (request.json["kind"], request.json["verdict"]["id"]) == ("Notification", "V-1")


def test_only_wanted_events_open_something(tmp_path: Path, server: HttpSink) -> None:
    sink = Sink("webhook", frozenset({NoticeEvent.VERDICT_HIGH}), server.url)
    other = replace(FIRST, event=NoticeEvent.RUN_WAITING, key="brctl/x/y/z")
    assert notify(tmp_path, sink, other, FIRST) == [DeliveryState.UNASKED, DeliveryState.SENT]


def test_a_playbook_that_pages_reaches_only_pagers(tmp_path: Path, server: HttpSink) -> None:
    server.always = Reply(200, b'{"ok": true, "channel": "C7", "ts": "17.5"}')
    both = notifier(tmp_path, pagerduty(tmp_path, server), slack(tmp_path, server))
    assert [d.sink for d in both.notify(FIRST, PAGING)] == ["pagerduty"]


def hook(folder: Path, name: str, text: str, mode: int = 0o755) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


def test_hook_programs_get_the_document_on_stdin_and_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's environment may hold tokens; a hook gets none of them."""
    monkeypatch.setenv("SOME_TOKEN", "t0ken")
    hooks = tmp_path / "hooks.d"
    script = 'cat > "$0.seen"; env > "$0.env"; echo "$1" > "$0.event"'
    path = hook(hooks, "10-keep", f"#!/bin/sh\n{script}\n")
    hook(hooks, "README", "not a program", 0o644)
    assert notify(tmp_path, Sink("hooks", ALL, folders=(hooks,)), FIRST) == [DeliveryState.SENT]
    assert json.loads(Path(f"{path}.seen").read_text())["verdict"]["id"] == "V-1"
    assert "t0ken" not in Path(f"{path}.env").read_text()
    assert Path(f"{path}.event").read_text() == "verdict.high\n"


def test_a_hook_that_hangs_is_killed_with_everything_it_started(tmp_path: Path) -> None:
    hooks = tmp_path / "hooks.d"
    hook(hooks, "10-hang", f"#!/bin/sh\nsleep 600 & echo $! > {tmp_path}/child; wait\n")
    hook(hooks, "20-good", f"#!/bin/sh\ntouch {tmp_path}/good\n")
    sink = Sink("hooks", ALL, folders=(hooks,))
    child = tmp_path / "child"
    for deadline_s in (1.0, 5.0, TIMEOUT_S):
        (failed,) = notifier(tmp_path, sink, deadline_s=deadline_s).notify(FIRST)
        assert "10-hang: not done in time, killed" in failed.why
        # Killed before it began, where the machine is busy: then with more time.
        if child.exists() and child.read_text():
            break
    limit_s = time.monotonic() + TIMEOUT_S
    while runs(int(child.read_text())):
        assert time.monotonic() < limit_s, "what the hook started lives on"
        time.sleep(0.05)


def test_a_hook_others_may_write_is_not_run(tmp_path: Path) -> None:
    hooks = tmp_path / "hooks.d"
    path = hook(hooks, "10-open", f"#!/bin/sh\ntouch {tmp_path}/ran\n", 0o777)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777
    (failed,) = notifier(tmp_path, Sink("hooks", ALL, folders=(hooks,))).notify(FIRST)
    assert "others may write it" in failed.why
    assert not (tmp_path / "ran").exists()
