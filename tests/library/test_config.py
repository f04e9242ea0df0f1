"""config.yaml: what a site may set, and the line of what it may not."""

from datetime import timedelta
from pathlib import Path

import pytest

from brctl.fanout.choose import TRANSPORTS
from brctl.library.config import Settings, load_settings
from brctl.library.sweep_settings import SweepSettings
from brctl.model.errors import ConfigError

HEAD = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
contexts: {prod: {inventory: []}}
"""


def settings_of(folder: Path, text: str) -> Settings:
    (folder / "config.yaml").write_text(HEAD + text)
    return load_settings({}, config=folder / "config.yaml")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_transport_can_be_configured(tmp_path: Path, transport: str) -> None:
    """What `open_transport` can open, a file may name."""
    assert settings_of(tmp_path, f"ssh: {{transport: {transport}}}\n").ssh.transport == transport


def test_sweep_keys_are_read_with_their_units(tmp_path: Path) -> None:
    """A count of nodes may be written as a number."""
    text = "sweep: {profile: storage, interval: 30m, max_unknown: 3, reminder: 12h}\n"
    expected = SweepSettings("storage", "30m", "3", timedelta(hours=12))
    assert settings_of(tmp_path, text).sweep == expected
    assert settings_of(tmp_path, "sweep: {max_unknown: 1%}\n").sweep.max_unknown == "1%"
    assert settings_of(tmp_path, "").sweep == SweepSettings()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sweep: {reminders: 1h}", "unknown key 'reminders' in sweep; did you mean 'reminder'?"),
        ("sweep: {reminder: soon}", "'reminder': 'soon': not a duration"),
        (
            "sweep: {max_unknown: 200%}",
            "'max_unknown': '200%': a share of the nodes is at most 100%",
        ),
        ("sweep: {max_unknown: few}", "'max_unknown': 'few': write a number of nodes"),
        ("sweep: {max_unknown: -1}", "'max_unknown': '-1': write a number of nodes"),
        ("sweep: {max_unknown: true}", "'max_unknown' must be a whole number"),
        ("sweep: {interval: 3}", "'interval' must be text, not a whole number"),
        ("sweep: fast", "sweep must be a mapping, not text"),
    ],
)
def test_a_mistake_below_sweep_names_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, f"{text}\n")
    assert f"config.yaml:5: {problem}" in str(caught.value)


FULL = """\
notify:
  deadline: 5s
  pagerduty: {routing_key_file: pd, when: [verdict.high, run.waiting]}
  slack: {token_file: /etc/brctl/secrets/slack, channel: training-oncall}
  alertmanager: {url: "http://am:9093/"}
  webhook: {url: "https://hooks.example.com/x", key_file: hmac}
  hooks: {dir: hooks.d}
ticket: {command: [/opt/site/ticket, --open]}
"""


def test_notify_names_files_and_never_secrets(tmp_path: Path) -> None:
    """Relative files lie beside the configuration; every sink has events of its own."""
    notify = settings_of(tmp_path, FULL).notify
    sinks = {sink.kind: sink for sink in notify.sinks}
    assert list(sinks) == ["pagerduty", "slack", "alertmanager", "webhook", "hooks"]
    assert sinks["pagerduty"].secret_file == tmp_path / "pd"
    assert sorted(sinks["pagerduty"].when) == ["run.waiting", "verdict.high"]
    assert sinks["alertmanager"].url == "http://am:9093"
    assert sinks["hooks"].folders == (tmp_path / "hooks.d",)
    assert notify.ticket.command == ("/opt/site/ticket", "--open")
    assert settings_of(tmp_path, "").notify.sinks == ()


def test_programs_in_hooks_d_need_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "hooks.d").mkdir()
    (sink,) = settings_of(tmp_path, "").notify.sinks
    assert (sink.kind, sink.folders) == ("hooks", (tmp_path / "hooks.d",))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("notify: {pagerdty: {}}", "unknown key 'pagerdty' in notify; did you mean 'pagerduty'?"),
        ("notify: {pagerduty: {}}", "notify.pagerduty needs the key 'routing_key_file'"),
        ("notify: {pagerduty: {routing_key: x}}", "unknown key 'routing_key' in notify.pagerduty"),
        ("notify: {slack: {channel: c}}", "slack needs `webhook_file` or `token_file`"),
        ("notify: {slack: {token_file: t}}", "a bot token needs `channel`"),
        ("notify: {alertmanager: {}}", "notify.alertmanager needs the key 'url'"),
        ("notify: {alertmanager: {url: am:9093}}", "'am:9093' is not an http or https address"),
        ("notify: {webhook: {url: 'https://u:p@h/'}}", "'url' holds a password"),
        ("notify: {webhook: {url: 'http://h/', token_file: t}}", "would travel to h in clear"),
        ("notify: {webhook: {url: 'https://h/', when: [verdict.hi]}}", "no event 'verdict.hi'"),
        ("notify: {deadline: 10m}", "'deadline' must be between 1s and 60s"),
        ("ticket: {command: [ticket]}", "name the program with its whole path"),
        ("ticket: {command: [/t], url: 'https://h/'}", "not to both"),
    ],
)
def test_a_mistake_below_notify_names_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, f"{text}\n")
    assert problem in str(caught.value)
    assert "config.yaml:5: " in str(caught.value)
