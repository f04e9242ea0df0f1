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
