"""A notice as Slack blocks: six small ones, so that no message is refused for its length."""

from brctl.model.nodeset import fold
from brctl.model.notice import Memory, NoticeState
from brctl.view.notices.contents import Notice
from brctl.view.notices.page import Json
from brctl.view.notices.text import clean

HEADER = 150
SECTION = 600
THREAD, THREAD_LINES = 3000, 14
_WORDS = {
    NoticeState.FIRING: "",
    NoticeState.ACKNOWLEDGED: "acknowledged: ",
    NoticeState.RESOLVED: "resolved: ",
    NoticeState.INFO: "",
}


def slack_escape(text: str) -> str:
    """Text that can neither mention anybody nor make a link.

    Examples:
        >>> slack_escape("<!channel> & more")
        '&lt;!channel&gt; &amp; more'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack_blocks(notice: Notice) -> list[Json]:
    """What, do, if wrong, suspects, command, link; those that have nothing to say are left out."""
    title = fitted(f"[{notice.context}] {_WORDS[notice.state]}{notice.summary}", HEADER)
    asks = notice.state in (NoticeState.FIRING, NoticeState.INFO)
    rows = (
        ("do", notice.needs or notice.fault),
        ("if wrong", notice.cost_if_wrong if asks else ""),
        ("suspects", " ".join([fold(notice.nodes), *notice.devices]).strip()),
        ("runbook", notice.runbook),
    )
    sections = [_section(label, text) for label, text in rows if text]
    command = "  or  ".join(filter(None, (notice.do, notice.why)))
    if command and asks:
        sections.insert(-1 if notice.runbook else len(sections), _command(command))
    return [{"type": "header", "text": {"type": "plain_text", "text": title}}, *sections]


def fitted(text: str, limit: int) -> str:
    """Cleaned and escaped, and still no longer than the limit."""
    plain = clean(text, limit)
    while len(slack_escape(plain)) > limit:
        plain = plain[:-2] + "…"
    return slack_escape(plain)


def _section(label: str, text: str) -> Json:
    # Plain text: what a node said cannot become markup.
    line = fitted(f"{label}: {text}", SECTION)
    return {"type": "section", "text": {"type": "plain_text", "text": line}}


def _command(command: str) -> Json:
    """A code span; the command's own backticks would end it."""
    text = fitted(command.replace("`", "'"), SECTION)
    return {"type": "section", "text": {"type": "mrkdwn", "text": f"`{text}`"}}


def slack_text(notice: Notice) -> str:
    """The same in one line, for notifications and screen readers."""
    return fitted(f"[{notice.context}] {_WORDS[notice.state]}{notice.summary}", SECTION)


def slack_webhook_body(notice: Notice) -> dict[str, Json]:
    """What an incoming webhook takes; its channel is fixed where it was made."""
    return {"text": slack_text(notice), "blocks": slack_blocks(notice)}


def slack_message(notice: Notice, channel: str, memory: Memory | None) -> tuple[str, Json]:
    """Method and body: a new message, or the same one moved on while the fault is open."""
    body: dict[str, Json] = {**slack_webhook_body(notice), "unfurl_links": False}
    if memory is not None and memory.is_open and memory.ref.get("ts"):
        del body["unfurl_links"]
        return "chat.update", {**body, "channel": memory.ref["channel"], "ts": memory.ref["ts"]}
    return "chat.postMessage", {**body, "channel": channel}


def slack_thread(notice: Notice, channel: str, ts: str) -> Json:
    """Everything else, as a reply under the message."""
    lines = [f"{notice.event.value}: {notice.summary}", *notice.details[:THREAD_LINES]]
    text = "\n".join(fitted(line, THREAD // (THREAD_LINES + 1)) for line in lines)
    return {"channel": channel, "thread_ts": ts, "text": text, "mrkdwn": False}
