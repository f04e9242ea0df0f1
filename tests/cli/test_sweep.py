"""`brctl sweep` on nodes that are this machine: what the configuration says holds without flags."""

from pathlib import Path

import pytest

from brctl.cli.commands import sweep as sweep_module
from brctl.model.errors import ConfigError, UsageError
from tests.cli.test_run import call

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
contexts: {prod: {inventory: [{file: own.yaml}]}}
ssh: {transport: local}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
defaults: {labels: {kernel_log: %s}}
nodes: {n1: {}, n2: {}, n3: {python: /nowhere/python3}}
"""
QUIET = "6,1,1000,-;eth0: link becomes ready\n"
ASKED = ("--checks", "host.kernel")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Three nodes with a kernel log of their own, one of which has no Python."""
    (tmp_path / "own.yaml").write_text(OWN % (tmp_path / "kmsg"))
    (tmp_path / "kmsg").write_text(QUIET)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def configure(config: Path, text: str) -> Path:
    config.write_text(CONFIG + text)
    return config


def test_the_configured_share_of_silent_nodes_is_allowed(config: Path) -> None:
    """And a flag is stricter or laxer than the file as its author wants."""
    argv = (*ASKED, "--exit-zero")
    assert call(sweep_module, config, *argv)[0] == 3
    allowed = configure(config, "sweep: {max_unknown: 34%}\n")
    assert call(sweep_module, allowed, *argv)[0] == 0
    assert call(sweep_module, allowed, *argv, "--max-unknown", "0")[0] == 3


def test_the_configured_reminder_tells_a_lasting_problem_again(config: Path) -> None:
    """The second look is quiet by default, and tells it again when every look is due."""
    assert "n3" in call(sweep_module, config, *ASKED, "--cron")[1]
    assert call(sweep_module, config, *ASKED, "--cron")[1] == ""
    eager = configure(config, "sweep: {reminder: 0s}\n")
    assert "STILL" in call(sweep_module, eager, *ASKED, "--cron")[1]


def test_diff_tells_what_changed_and_that_nothing_did(config: Path) -> None:
    """A person who asks gets an answer where cron would be silent; the exit code is the sweep's."""
    code, text = call(sweep_module, config, *ASKED, "--diff")
    assert (code, text.split()[:3]) == (3, ["NEW", "UNKNOWN", "n3"])
    assert call(sweep_module, config, *ASKED, "--diff") == (
        3, "nothing changed since the sweep before\n",
    )  # fmt: skip


def test_the_configured_profile_is_swept(config: Path) -> None:
    """A profile nobody's checks have is an error that a flag can still overrule."""
    configure(config, "sweep: {profile: none-such}\n")
    with pytest.raises(UsageError, match="no check matches: there is no profile 'none-such'"):
        call(sweep_module, config, "--checks", "host.*")
    assert call(sweep_module, config, *ASKED, "--profile", "sweep", "-w", "n1")[0] in (0, 1)


def test_a_mistake_in_the_file_stops_the_sweep(config: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'max_unknown'"):
        call(sweep_module, configure(config, "sweep: {max_unkown: 1}\n"), *ASKED)
