"""`brctl doctor ssh`: the transport of every node with its reason, and whose host key is known."""

import json
from pathlib import Path

import asyncssh
import pytest

from brctl.cli.commands import doctor as doctor_module
from brctl.model.errors import UsageError
from tests.cli.test_run import call

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
contexts: {prod: {inventory: [{file: own.yaml}]}}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {}, n2: {port: 2222}, n3: {}, n4: {via: "ops@bastion:2200"}}
"""
SSH_CONFIG = "Host n3\n  ProxyJump bastion\n"


def key() -> str:
    return asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One node known, one on another port, one that ssh_config touches, one behind a jump host."""
    known = f"n1 {key()}\n[n2]:2222 {key()}\n"
    (tmp_path / "known_hosts").write_text(known)
    (tmp_path / "ssh_config").write_text(SSH_CONFIG)
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "config.yaml").write_text(
        f"{CONFIG}ssh: {{known_hosts: known_hosts, config_file: ssh_config}}\n"
    )
    return tmp_path / "config.yaml"


def routes(config: Path, *argv: str) -> dict[str, tuple[str, str]]:
    """Transport and key state by node."""
    _, text = call(doctor_module, config, "ssh", *argv, "--json")
    return {
        each["node"]: (each["transport"], each["host_key"]) for each in json.loads(text)["routes"]
    }


def test_every_node_and_its_jump_host_has_a_transport_and_a_key_state(config: Path) -> None:
    assert routes(config) == {
        "n1": ("asyncssh", "trusted"),
        "n2": ("asyncssh", "trusted"),
        "n3": ("openssh", "left to ssh"),
        "n4": ("asyncssh", "missing"),
        "ops@bastion:2200": ("asyncssh", "missing"),
    }


def test_the_reason_names_keyword_file_and_line(config: Path) -> None:
    """And the way out of a missing key is the next command."""
    code, text = call(doctor_module, config, "ssh")
    assert code == 2
    line = next(each for each in text.splitlines() if " n3 " in each)
    assert f"(proxyjump at {config.parent / 'ssh_config'}:2)" in line
    assert text.splitlines()[-1].startswith("host keys of 2 of 5 hosts known; looked into")
    assert call(doctor_module, config, "ssh", "-w", "n[1-2]")[0] == 0


def test_without_known_hosts_nobody_is_known(config: Path) -> None:
    """The user's own file is where it is looked for then."""
    config.write_text(CONFIG)
    code, text = call(doctor_module, config, "ssh", "-w", "n1")
    assert code == 2
    assert "NO host key known" in text
    assert "no ssh.config_file is configured" in text


def test_an_authority_counts_only_for_who_understands_it(config: Path) -> None:
    """Paramiko passes over @cert-authority lines."""
    (config.parent / "known_hosts").write_text(f"@cert-authority n* {key()}\n")
    states = {}
    for transport in ("asyncssh", "broker", "openssh", "paramiko", "local"):
        config.write_text(f"{CONFIG}ssh: {{known_hosts: known_hosts, transport: {transport}}}\n")
        states[transport] = routes(config, "-w", "n1")["n1"][1]
    assert states == {
        "asyncssh": "authority", "broker": "authority", "openssh": "authority",
        "paramiko": "missing", "local": "not needed",
    }  # fmt: skip


def test_a_revoked_key_is_not_known(config: Path) -> None:
    """Even where another line trusts it."""
    bad = key()
    (config.parent / "known_hosts").write_text(f"n1 {bad}\n@revoked * {bad}\n")
    assert routes(config, "-w", "n1")["n1"][1] == "revoked"


def test_jump_hosts_in_a_circle_end(config: Path) -> None:
    """Every host once, and no hang."""
    (config.parent / "own.yaml").write_text(
        "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes: {a: {via: b}, b: {via: a}}\n"
    )
    assert set(routes(config, "-w", "a")) == {"a", "b"}


def test_doctor_alone_asks_no_node_and_says_so(config: Path) -> None:
    """`-w` without `--security` is a mistake; it was taken and ignored."""
    with pytest.raises(UsageError, match="reaches no node"):
        call(doctor_module, config, "-w", "n1")
