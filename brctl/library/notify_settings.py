"""The `notify:` and `ticket:` keys of config.yaml: who is told what, and where secrets lie."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from brctl.library.file_tables import (
    ALERTMANAGER,
    EVENTS,
    HOOKS,
    NOTIFY,
    PAGERDUTY,
    SLACK,
    TICKET,
    WEBHOOK,
)
from brctl.library.schema import Section
from brctl.model.errors import did_you_mean
from brctl.model.notice import NoticeEvent

E = NoticeEvent
_FIRING = frozenset({E.VERDICT_HIGH, E.RUN_WAITING, E.RUN_NEEDS_HUMAN, E.RUN_ENDED})
_ALL = frozenset(NoticeEvent(word) for word in EVENTS)
PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
SLACK_API = "https://slack.com/api"
HOOK_FOLDER = "hooks.d"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Sink:
    """One place that is told.

    Attributes:
        kind: `pagerduty`, `slack`, `alertmanager`, `webhook` or `hooks`.
        when: Events that open something there; what moves or closes it always follows.
        url: Where to post; "" when the URL itself is the secret.
        secret_file: Routing key, webhook URL or HMAC key, by kind.
        token_file: Bot token (Slack) or bearer token (Alertmanager, webhook).
        channel: Slack's channel.
        folders: Folders of hook programs.
        ca_file: Certificates to trust instead of the system's.
    """

    kind: str
    when: frozenset[NoticeEvent] = _ALL
    url: str = ""
    secret_file: Path | None = None
    token_file: Path | None = None
    channel: str = ""
    folders: tuple[Path, ...] = ()
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class TicketProgram:
    """Where tickets are opened: a URL or a program; with neither, nowhere."""

    url: str = ""
    command: tuple[str, ...] = ()
    key_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """Everything about notifying people outside.

    Attributes:
        deadline_s: Longest time one notice may take, retries included.
        runbook: Link that every notice carries when its playbook has none.
    """

    sinks: tuple[Sink, ...] = ()
    deadline_s: float = 10.0
    runbook: str = ""
    ticket: TicketProgram = field(default_factory=TicketProgram)


def read_notify(
    section: Section, ticket: Section, base: Path, hook_dirs: Sequence[Path]
) -> NotifySettings:
    """The settings of both sections.

    Args:
        section: `notify:`.
        ticket: `ticket:`.
        base: Folder that relative paths start from.
        hook_dirs: Folders whose `hooks.d` is used when nothing else is said.

    Raises:
        ConfigError: A key is unknown or its value makes no sense; names the line.
    """
    section.allow(NOTIFY)
    sinks = [
        reader(section.section(kind), base)
        for kind, reader in _READERS.items()
        if kind in section.data
    ]
    hooks = _hooks(section.section("hooks"), base, hook_dirs)
    deadline_s = section.duration_s("deadline", "10s")
    if not 1 <= deadline_s <= 60:
        raise section.error("'deadline' must be between 1s and 60s", "deadline")
    return NotifySettings(
        sinks=(*sinks, *([hooks] if hooks.folders else [])),
        deadline_s=deadline_s,
        runbook=section.value("runbook", str, ""),
        ticket=_ticket(ticket, base),
    )


def _pagerduty(section: Section, base: Path) -> Sink:
    section.allow(PAGERDUTY)
    return Sink(
        "pagerduty",
        _when(section, _FIRING),
        _url(section, PAGERDUTY_URL, secret=True),
        _file(section, "routing_key_file", base),
        ca_file=_optional_file(section, "ca_file", base),
    )


def _slack(section: Section, base: Path) -> Sink:
    section.allow(SLACK)
    token = _optional_file(section, "token_file", base)
    if token is None and "webhook_file" not in section.data:
        raise section.error("slack needs `webhook_file` or `token_file`")
    channel = section.value("channel", str, "")
    if token is not None and not channel:
        raise section.error("a bot token needs `channel`", "token_file")
    return Sink(
        "slack",
        _when(section, _ALL),
        _url(section, SLACK_API, secret=True),
        _optional_file(section, "webhook_file", base),
        token,
        channel,
        ca_file=_optional_file(section, "ca_file", base),
    )


def _alertmanager(section: Section, base: Path) -> Sink:
    section.allow(ALERTMANAGER)
    token = _optional_file(section, "token_file", base)
    return Sink(
        "alertmanager",
        _when(section, _FIRING - {E.RUN_ENDED}),
        _url(section, secret=token is not None),
        token_file=token,
        ca_file=_optional_file(section, "ca_file", base),
    )


def _webhook(section: Section, base: Path) -> Sink:
    section.allow(WEBHOOK)
    token = _optional_file(section, "token_file", base)
    return Sink(
        "webhook",
        _when(section, _ALL),
        _url(section, secret=token is not None),
        _optional_file(section, "key_file", base),
        token,
        ca_file=_optional_file(section, "ca_file", base),
    )


_READERS = {
    "pagerduty": _pagerduty, "slack": _slack, "alertmanager": _alertmanager, "webhook": _webhook,
}  # fmt: skip


def _hooks(section: Section, base: Path, hook_dirs: Sequence[Path]) -> Sink:
    """Programs need no configuration: being in `hooks.d` is enough."""
    section.allow(HOOKS)
    named = section.optional("dir", str)
    folders = [base / named] if named else [folder / HOOK_FOLDER for folder in hook_dirs]
    found = tuple(dict.fromkeys(f for f in folders if named or f.is_dir()))
    return Sink("hooks", _when(section, _ALL), folders=found)


def _ticket(section: Section, base: Path) -> TicketProgram:
    section.allow(TICKET)
    command = section.texts("command", ())
    token = _optional_file(section, "token_file", base)
    if command and "url" in section.data:
        raise section.error("a ticket goes to `url` or to `command`, not to both", "command")
    if command and not Path(command[0]).is_absolute():
        raise section.error(f"{command[0]!r}: name the program with its whole path", "command")
    return TicketProgram(
        url=_url(section, secret=token is not None) if "url" in section.data else "",
        command=command,
        key_file=_optional_file(section, "key_file", base),
        token_file=token,
        ca_file=_optional_file(section, "ca_file", base),
    )


def _when(section: Section, default: frozenset[NoticeEvent]) -> frozenset[NoticeEvent]:
    words = section.texts("when", tuple(sorted(default)))
    for index, word in enumerate(words):
        if word not in EVENTS:
            raise section.error(f"no event {word!r}; {did_you_mean(word, EVENTS)}", "when", index)
    return frozenset(map(NoticeEvent, words))


def _url(section: Section, default: str | None = None, *, secret: bool) -> str:
    """A URL; one that a secret travels to must be https, or on this machine."""
    text = section.value("url", str, default)
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise section.error(f"'url': {text!r} is not an http or https address", "url")
    if parts.username or parts.password:
        raise section.error("'url' holds a password; put it into a file, `token_file`", "url")
    if secret and parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise section.error(f"'url': a secret would travel to {parts.hostname} in clear", "url")
    return text.rstrip("/")


def _file(section: Section, key: str, base: Path) -> Path:
    return base / Path(section.value(key, str)).expanduser()


def _optional_file(section: Section, key: str, base: Path) -> Path | None:
    return _file(section, key, base) if key in section.data else None
