"""Doctor --security names what is open, to whom, why it matters and what to type; all of it."""

import json
import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brctl.cli.commands import doctor as doctor_module
from brctl.engine.controller.security import state as state_module
from brctl.engine.controller.security.environment import environment_findings, people_findings
from brctl.engine.controller.security.report import examine_security, first_environment
from brctl.engine.controller.security.ssh import agent_findings, has_passphrase
from brctl.fanout.processes.broker_wire import socket_path
from brctl.journal.chain_key import key_file, own_or_new_key
from brctl.library.config import load_settings
from brctl.library.new_check import write_new_check
from brctl.library.shipped import shipped_dir
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.sweep import Health
from tests.cli.test_run import call

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
SOMEBODY = 65534
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
state_dir: state
ssh: {transport: local, identity_file: key, config_file: ssh_config}
calendars: {windows: {file: windows.ics}}
notify: {webhook: {url: "https://example.org", token_file: token}}
ticket: {command: [PLACE/ticket]}
contexts:
  here: {inventory: [{file: inventory.yaml}]}
"""
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {address: 127.0.0.1}, n2: {address: 127.0.0.2}}
"""


def keygen(path: Path, passphrase: str, *more: str) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path), *more]
    subprocess.run(command, check=True)


def fresh(path: Path) -> Path:
    path.unlink()
    return path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with one file of each kind, everything as it should be."""
    for name, text in {
        "config.yaml": CONFIG.replace("PLACE", str(tmp_path)),
        "inventory.yaml": INVENTORY,
        "guards.yaml": "apiVersion: brctl.dev/v1\nkind: Guards\nblast_radius: {max_nodes: 2}\n",
        "windows.ics": "BEGIN:VCALENDAR\nEND:VCALENDAR\n",
        "token": "secret-token\n",
        "ticket": "#!/bin/sh\n",
        "ssh_config": "Host *\n  ForwardAgent no\n",
        "rules.d/site.yaml": "",
        "hooks.d/page": "#!/bin/sh\n",
        "playbooks/cordon.yaml": (shipped_dir("playbooks") / "cordon.yaml").read_text(),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
    write_new_check("site.tmp", tmp_path / "checks")
    keygen(tmp_path / "key", "a passphrase")
    (tmp_path / "state" / "runs").mkdir(parents=True, mode=0o700)
    (tmp_path / "state").chmod(0o700)
    os.umask(0o077)
    return tmp_path


@pytest.fixture(autouse=True)
def umask_of_before() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


GOOD = {"PATH": "/usr/bin:/bin"}


def findings(site: Path, environ: dict[str, str] | None = None) -> list[SecurityFinding]:
    """What is not in order; nobody's login is looked at, the machine under test has what it has."""
    found = examine_security(
        GOOD if environ is None else environ, lambda: load_settings({}, config=site / "config.yaml")
    )
    return [each for each in found if each.health is not Health.OK and each.topic != "people"]


def test_a_private_site_is_in_order_and_every_kind_was_looked_at(site: Path) -> None:
    """Each good line says what was looked at; nothing else is there."""
    assert findings(site) == []
    found = examine_security(GOOD, lambda: load_settings({}, config=site / "config.yaml"))
    assert [each.topic for each in found if each.topic != "people"] == [
        "PATH", "PYTHONPATH", "umask", "agent", "configuration", "secrets", "state", "journal",
        "ssh-key", "agent-forwarding",
    ]  # fmt: skip
    (configuration,) = [each for each in found if each.topic == "configuration"]
    assert configuration.text.startswith("10 files that are obeyed")


def widen(name: str, mode: int) -> Callable[[Path], object]:
    return lambda site: (site / name).chmod(mode)


BROKEN: dict[str, tuple[Callable[[Path], object], str, Health, str]] = {
    "limits": (widen("guards.yaml", 0o666), "guards", Health.CRITICAL, "chmod go-w"),
    "calendar": (widen("windows.ics", 0o666), "calendar", Health.CRITICAL, "chmod go-w"),
    "playbook": (widen("playbooks/cordon.yaml", 0o666), "playbook", Health.CRITICAL, "chmod go-w"),
    "probe": (widen("checks/site/tmp/probe.py", 0o666), "check", Health.CRITICAL, "chmod go-w"),
    "rules": (widen("rules.d/site.yaml", 0o666), "rules", Health.CRITICAL, "chmod go-w"),
    "hook": (widen("hooks.d/page", 0o777), "hook", Health.CRITICAL, "chmod go-w"),
    "ticket": (widen("ticket", 0o777), "ticket", Health.CRITICAL, "chmod go-w"),
    "token": (widen("token", 0o644), "secrets", Health.CRITICAL, "chmod 600"),
    "key": (widen("key", 0o644), "ssh-key", Health.CRITICAL, "chmod 600"),
    "plain key": (
        lambda site: keygen(fresh(site / "key"), ""),
        "ssh-key", Health.WARNING, "ssh-keygen -p",
    ),
    "no key": (
        lambda site: (site / "key").write_text("junk"), "ssh-key", Health.UNKNOWN, ""
    ),
    "state read": (widen("state", 0o755), "state", Health.WARNING, "chmod go-rwx"),
    "state written": (widen("state/runs", 0o777), "state", Health.CRITICAL, "chmod go-rwx"),
    "umask": (lambda _: os.umask(0), "umask", Health.WARNING, "umask 077"),
    "forwarding": (
        lambda site: (site / "ssh_config").write_text("Host 127.0.0.2\n  ForwardAgent yes\n"),
        "agent-forwarding", Health.WARNING, "ForwardAgent no",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_each_thing_that_is_open_is_one_line_with_why_and_what_to_type(
    case: str, site: Path
) -> None:
    """And it is the only one."""
    make, topic, health, command = BROKEN[case]
    make(site)
    (found,) = findings(site)
    assert (found.topic, found.health) == (topic, health)
    assert found.command.startswith(command)
    assert found.why
    assert found.subject


def test_what_is_typed_as_it_says_mends_it(site: Path) -> None:
    """Every command of the file modes, run by a shell as it stands."""
    for name in ("guards.yaml", "windows.ics", "token", "key", "state/runs", "hooks.d/page"):
        (site / name).chmod(0o777)
    found = findings(site)
    assert len(found) == 6
    for each in found:
        subprocess.run(["sh", "-c", each.command], check=True)
    assert findings(site) == []


def test_an_inventory_that_others_may_write_is_named_and_what_needs_it_is_unknown(
    site: Path,
) -> None:
    """Its nodes' ssh_config cannot be asked for, which is not silence."""
    (site / "inventory.yaml").chmod(0o666)
    own, forwarding = findings(site)
    assert (own.topic, own.health) == ("inventory", Health.CRITICAL)
    assert (forwarding.topic, forwarding.health) == ("agent-forwarding", Health.UNKNOWN)


def test_only_the_nodes_whose_ssh_lends_the_agent_are_named(site: Path) -> None:
    BROKEN["forwarding"][0](site)
    (found,) = findings(site)
    assert found.subject == "n2"


@pytest.mark.parametrize("place", ["folder", "file"])
def test_a_configuration_that_is_refused_is_said_with_all_that_needs_none(
    place: str, site: Path
) -> None:
    target = site if place == "folder" else site / "config.yaml"
    target.chmod(0o777)
    found = findings(site, {"PATH": "/usr/bin", "PYTHONPATH": ":/opt/x"})
    assert [each.topic for each in found] == ["PYTHONPATH", "configuration"]
    assert found[1].command == f"chmod go-w {target}"


@NEEDS_ROOT
def test_files_of_somebody_else_are_theirs_to_change(site: Path) -> None:
    os.chown(site / "state" / "runs", SOMEBODY, SOMEBODY)
    (found,) = findings(site)
    assert (found.health, found.command) == (
        Health.CRITICAL, f"chown 0 {site / 'state' / 'runs'}",
    )  # fmt: skip


def test_a_state_of_many_open_files_is_few_lines(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was not looked at is no silence."""
    for number in range(9):
        (site / "state" / f"f{number}").write_text("")
        (site / "state" / f"f{number}").chmod(0o666)
    assert len(findings(site)) == 6
    monkeypatch.setattr(state_module, "LOOKED_AT", 4)
    assert any("only the first 4" in each.text for each in findings(site))


def test_a_journal_key_that_others_read_and_a_broker_folder_that_others_write_are_found(
    site: Path,
) -> None:
    own_or_new_key()
    folder = socket_path().parent
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    assert findings(site) == []
    key_file().chmod(0o644)
    folder.chmod(0o777)
    key, broker = findings(site)
    assert (key.topic, key.command) == ("journal-key", f"chmod 600 {key_file()}")
    assert (broker.topic, broker.command) == ("broker", f"chmod 700 {folder}")


@pytest.mark.parametrize("value", [":/usr/bin", "/usr/bin:", ".:/usr/bin", "bin"])
@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH"])
def test_an_entry_without_a_whole_path_is_the_current_directory(name: str, value: str) -> None:
    (found,) = [f for f in environment_findings({name: value}) if f.health is not Health.OK]
    assert (found.topic, found.health) == (name, Health.CRITICAL)


def test_a_folder_of_path_that_others_may_write_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (found,) = [
        f for f in environment_findings({"PATH": f"/usr/bin:{tmp_path}"})
        if f.health is not Health.OK
    ]  # fmt: skip
    assert (found.subject, found.command) == (str(tmp_path), f"chmod go-w {tmp_path}")


def test_the_environment_is_the_one_the_process_got() -> None:
    """`brctl` takes an empty entry of PYTHONPATH out for its children, and still tells of it."""
    script = (
        "import os; os.environ['PYTHONPATH'] = 'changed'\n"
        "from brctl.engine.controller.security.report import first_environment\n"
        "print(first_environment()['PYTHONPATH'])"
    )
    root = Path(doctor_module.__file__).parents[3]
    environ = {**os.environ, "PYTHONPATH": f"{root}:"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], env=environ, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == f"{root}:"
    assert first_environment(Path("/nonexistent")) == dict(os.environ)


@pytest.mark.skipif(os.geteuid() != 0, reason="about root")
def test_root_without_a_login_uid_may_be_two_people(tmp_path: Path) -> None:
    login = tmp_path / "loginuid"
    for text, health in (
        ("4294967295", Health.WARNING), ("0", Health.WARNING),
        (str(pwd.getpwnam("daemon").pw_uid), Health.OK),
    ):  # fmt: skip
        login.write_text(text)
        (found,) = people_findings({"SUDO_USER": "bin"}, login)
        assert (found.health, found.subject) == (health, "SUDO_USER=bin")
        assert bool(found.command) is (health is not Health.OK)


def test_an_agent_that_was_lent_to_this_machine_is_told_from_ones_own(tmp_path: Path) -> None:
    name = str(tmp_path / "agent")
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(name)
        Path(name).chmod(0o600)
        (own,) = agent_findings({"SSH_AUTH_SOCK": name})
        (lent,) = agent_findings(
            {"SSH_AUTH_SOCK": name, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}
        )
        Path(name).chmod(0o666)
        tmp_path.chmod(0o777)
        (exposed,) = agent_findings({"SSH_AUTH_SOCK": name})
    assert [f.health for f in (own, lent, exposed)] == [
        Health.OK, Health.WARNING, Health.CRITICAL,
    ]  # fmt: skip


@pytest.mark.parametrize("form", [[], ["-m", "PEM", "-t", "rsa"], ["-m", "PKCS8", "-t", "ecdsa"]])
@pytest.mark.parametrize("passphrase", ["", "a passphrase"])
def test_a_passphrase_is_seen_in_every_form_of_key(
    form: list[str], passphrase: str, tmp_path: Path
) -> None:
    keygen(tmp_path / "key", passphrase, *form)
    assert has_passphrase((tmp_path / "key").read_bytes()) is bool(passphrase)


@pytest.mark.parametrize(
    "raw", [b"", b"junk", b"-----BEGIN OPENSSH PRIVATE KEY-----\n", b"\xff" * 999,
            b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END\n",
            b"-----BEGIN OPENSSH PRIVATE KEY-----\n!!!\n\n\n"]
)  # fmt: skip
def test_what_is_no_key_has_no_answer(raw: bytes) -> None:
    """Neither a passphrase nor none."""
    assert has_passphrase(raw) is None


def test_the_command_ends_as_doctor_does_and_writes_a_document(site: Path) -> None:
    """The worst line decides; JSON has each line's parts."""
    (site / "guards.yaml").chmod(0o666)
    code, text = call(doctor_module, site / "config.yaml", "--security")
    assert code == 2
    assert f"type: chmod go-w {site / 'guards.yaml'}" in text
    assert "why: " in text
    assert text.splitlines()[0].startswith("FAIL")
    code, text = call(doctor_module, site / "config.yaml", "--security", "--json")
    row = json.loads(text)["findings"][0]
    assert (row["state"], row["topic"], row["type"]) == (
        "crit", "guards", f"chmod go-w {site / 'guards.yaml'}",
    )  # fmt: skip
