"""The sinks: each takes a notice and what it was told before, and gives how to reach it again."""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from brctl.library.notify_settings import Sink
from brctl.model.errors import ConfigError
from brctl.model.notice import Memory, NoticeState
from brctl.notify.hook_programs import programs_in, run_program
from brctl.notify.http import DeliveryError, HttpResponse, Post
from brctl.notify.secret_file import read_secret
from brctl.view.notices.alertmanager import alert_labels, alertmanager_body
from brctl.view.notices.contents import Notice
from brctl.view.notices.page import Json
from brctl.view.notices.pagerduty import pagerduty_actions, pagerduty_body
from brctl.view.notices.slack import slack_message, slack_thread, slack_webhook_body
from brctl.view.notices.webhook import notification_document

SIGNATURE = "X-Brctl-Signature"
Send = Callable[[Post], HttpResponse]
Ref = Mapping[str, str]


class Deliver(Protocol):
    """Tell one sink.

    Returns:
        What the sink needs to move the same thing on; None when this notice means nothing there.

    Raises:
        DeliveryError: It could not be told.
        ConfigError: A secret file cannot be used.
    """

    def __call__(
        self, sink: Sink, notice: Notice, memory: Memory | None, send: Send, deadline: float
    ) -> Ref | None: ...


def _post(sink: Sink, url: str, body: Json, headers: Mapping[str, str] | None = None) -> Post:
    return Post(url, encode(body), {**JSON, **(headers or {})}, sink.ca_file)


JSON = {"Content-Type": "application/json; charset=utf-8"}


def encode(body: Json) -> bytes:
    """A body as it travels; what JSON cannot say is a mistake here, not there."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def bearer(path: Path | None) -> dict[str, str]:
    """The header of a token file; none without one."""
    return {"Authorization": f"Bearer {read_secret(path)}"} if path else {}


def _pagerduty(
    sink: Sink, notice: Notice, memory: Memory | None, send: Send, deadline: float
) -> Ref | None:
    actions = pagerduty_actions(notice, memory)
    if not actions or sink.secret_file is None:
        return None
    key = read_secret(sink.secret_file)
    for action in actions:
        send(_post(sink, sink.url, pagerduty_body(notice, action, key)))
    return {}


def _slack(
    sink: Sink, notice: Notice, memory: Memory | None, send: Send, deadline: float
) -> Ref | None:
    if sink.token_file is None and sink.secret_file is not None:
        send(_post(sink, read_secret(sink.secret_file), slack_webhook_body(notice)))
        return {}
    channel = notice.channel or sink.channel
    try:
        answer = _call_slack(sink, *slack_message(notice, channel, memory), send)
    except SlackRefusedError as exc:
        if memory is None or "message" not in str(exc):
            raise
        # The message is gone; somebody deleted it, and the incident goes on.
        answer = _call_slack(sink, *slack_message(notice, channel, None), send)
    ref = {"channel": str(answer.get("channel", "")), "ts": str(answer.get("ts", ""))}
    thread = slack_thread(notice, ref["channel"], ref["ts"])
    try:
        _call_slack(sink, "chat.postMessage", thread, send)
    except DeliveryError as exc:
        raise DeliveryError(f"the thread: {exc}", ref=ref) from exc
    return ref


class SlackRefusedError(DeliveryError):
    """Slack answered, and refused."""


def _call_slack(sink: Sink, method: str, body: Json, send: Send) -> Mapping[str, Json]:
    """Slack says 200 to everything; whether it was done stands in `ok`."""
    answer = send(_post(sink, f"{sink.url}/{method}", body, bearer(sink.token_file)))
    try:
        reply = json.loads(answer.body)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        raise DeliveryError(f"{method}: the answer is no JSON object")
    if reply.get("ok") is not True:
        raise SlackRefusedError(f"{method}: {str(reply.get('error'))[:80]}")
    return reply


def _alertmanager(
    sink: Sink, notice: Notice, memory: Memory | None, send: Send, deadline: float
) -> Ref | None:
    known = memory is not None and memory.is_open
    if notice.state is not NoticeState.FIRING and not known:
        return None
    labels = alert_labels(notice, memory)
    body = alertmanager_body(notice, labels)
    send(_post(sink, f"{sink.url}/api/v2/alerts", body, bearer(sink.token_file)))
    return labels


def _webhook(
    sink: Sink, notice: Notice, memory: Memory | None, send: Send, deadline: float
) -> Ref | None:
    post = _post(sink, sink.url, notification_document(notice), bearer(sink.token_file))
    send(signed(post, sink.secret_file))
    return {}


def signed(post: Post, key_file: Path | None) -> Post:
    """The same with the HMAC of its body, if there is a key."""
    if key_file is None:
        return post
    digest = hmac.new(read_secret(key_file).encode(), post.body, hashlib.sha256).hexdigest()
    return Post(post.url, post.body, {**post.headers, SIGNATURE: f"sha256={digest}"}, post.ca_file)


def _hooks(
    sink: Sink, notice: Notice, memory: Memory | None, send: Send, deadline: float
) -> Ref | None:
    """Every program is run, whatever became of the ones before it."""
    programs, refused = programs_in(sink.folders)
    failed = list(refused)
    for program in programs:
        try:
            run_program((str(program), notice.event.value), encode(notification_document(notice)),
                        deadline)  # fmt: skip
        except DeliveryError as exc:
            failed.append(str(exc))
    if failed:
        raise DeliveryError("; ".join(failed))
    return {} if programs else None


DELIVER: Mapping[str, Deliver] = {
    "pagerduty": _pagerduty,
    "slack": _slack,
    "alertmanager": _alertmanager,
    "webhook": _webhook,
    "hooks": _hooks,
}


def problems_of(sink: Sink) -> list[str]:
    """What keeps a sink from working, as far as this machine can tell, in sentences."""
    wrong = []
    for path in (sink.secret_file, sink.token_file):
        try:
            if path is not None:
                read_secret(path)
        except ConfigError as exc:
            wrong.append(str(exc))
    if sink.folders:
        wrong += programs_in(sink.folders)[1]
    if sink.ca_file is not None and not sink.ca_file.is_file():
        wrong.append(f"{sink.ca_file}: no such file")
    return wrong
