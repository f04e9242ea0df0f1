"""`auto` gives a node to the OpenSSH client exactly when its ssh_config could matter."""

from pathlib import Path

import pytest

from brctl.fanout.auto_transport import AutoTransport
from brctl.fanout.ssh_config import load_ssh_config, why_openssh
from brctl.model.command import Command
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node
from tests.fakes.transport import FakeTransport


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("", ""),
        ("# Host *\nHost *\n  ServerAliveInterval 5\n  HashKnownHosts yes\n", ""),
        ("Host gpu*\n  ProxyJump bastion\n", "proxyjump at"),
        ("Host login\n  ProxyJump bastion\n", ""),
        ("Host gpu* !gpu01\n  ProxyJump bastion\n", ""),
        ("Host *\n  IdentityFile=~/.ssh/fleet\n", "identityfile at"),
        ("Match host gpu01 exec true\n  User ops\n", "user at"),
        ("Match all\n  CertificateFile c\n", "certificatefile at"),
        ("CertificateFile c\nHost other\n", "certificatefile at"),
        ("Host *\n  FutureKeyword 3\n", "futurekeyword at"),
        ("Include more.d/*\n", "hostname at"),
        ("Host other\nInclude more.d/*\n", ""),
    ],
)
def test_a_keyword_of_weight_for_this_host_decides(tmp_path: Path, text: str, keyword: str) -> None:
    """The reason names keyword, file and line; everything else stays with asyncssh."""
    (tmp_path / "more.d").mkdir()
    (tmp_path / "more.d" / "a").write_text("HostName 10.0.0.1\n")
    (tmp_path / "config").write_text(text)
    reason = why_openssh(load_ssh_config(tmp_path / "config"), "gpu01")
    assert reason.startswith(keyword) if keyword else reason == ""


def test_a_file_that_includes_itself_is_an_error(tmp_path: Path) -> None:
    """It ends, as ssh's own does."""
    (tmp_path / "config").write_text("Include config\n")
    with pytest.raises(ConfigError, match="deeper than 16"):
        load_ssh_config(tmp_path / "config")


async def test_each_node_goes_its_own_way(tmp_path: Path) -> None:
    """The exact transport is made when the first node needs it."""
    (tmp_path / "config").write_text("Host gpu02\n  ProxyJump bastion\n")
    fast, exact = FakeTransport(), FakeTransport()
    made: list[FakeTransport] = []

    def make() -> FakeTransport:
        made.append(exact)
        return exact

    auto = AutoTransport(fast, make, load_ssh_config(tmp_path / "config"))
    await auto.run(Node("gpu01", "gpu01"), Command(("true",)))
    assert made == []
    await auto.run(Node("gpu02", "gpu02"), Command(("true",)))
    await auto.close()
    assert [name for name, _ in fast.commands] == ["gpu01"]
    assert [name for name, _ in exact.commands] == ["gpu02"]
