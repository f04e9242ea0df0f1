"""The interactive shell, over a real terminal pair and a real SSH server."""

import asyncio
import os
import pty
import shutil
import subprocess
from pathlib import Path

import asyncssh
import pytest

from brctl.fanout.contract import LoginFailedError
from brctl.fanout.openssh_transport import shell_argv
from brctl.fanout.paramiko.login import log_in
from brctl.fanout.paramiko.shell import open_shell
from brctl.library.config import SshSettings
from brctl.model.command import Outcome
from brctl.model.inventory import Node
from tests.contract.transport_sites import SSHD, open_site
from tests.timeouts import TIMEOUT_S


async def test_keys_go_there_and_the_screen_comes_here(tmp_path: Path) -> None:
    """A shell started on a terminal runs what is typed and ends with its own status."""
    async with open_site(tmp_path, real_sshd=SSHD is not None and os.geteuid() == 0) as site:
        own, others = pty.openpty()
        screen, shown = os.pipe()
        try:
            shell = asyncio.create_task(
                asyncio.to_thread(open_shell, site.good, site.ssh, others, shown, "dumb")
            )
            os.write(own, b"echo to''gether; exit 7\r")
            async with asyncio.timeout(TIMEOUT_S):
                assert await shell == (Outcome.ANSWERED, 7)
            assert b"together" in os.read(screen, 1 << 16)
        finally:
            for descriptor in (own, others, screen, shown):
                os.close(descriptor)


async def test_a_marked_or_broken_line_of_known_hosts_ends_nobody(tmp_path: Path) -> None:
    """Paramiko ended at `@revoked`; the keys beside it hold, and the revoked one passes nowhere."""
    async with open_site(tmp_path, real_sshd=False) as site:
        known, key = tmp_path / "known_hosts", asyncssh.generate_private_key("ssh-ed25519")
        other = key.export_public_key().decode().strip()
        sound = known.read_text()
        odd = f"@revoked * {other}\n@cert-authority * {other}\n1.2.3.4 ssh-ed25519 AA=A\n"
        known.write_text(odd + sound)
        await asyncio.to_thread(lambda: log_in(site.good, site.ssh).close())
        ours = " ".join(sound.splitlines()[0].split()[1:])
        known.write_text(f"{sound}@revoked * {ours}\n")
        with pytest.raises(LoginFailedError, match="host key is revoked") as refused:
            await asyncio.to_thread(log_in, site.good, site.ssh)
        assert refused.value.outcome is Outcome.HOST_KEY_MISMATCH


def test_the_ssh_program_gets_arguments_and_no_shell() -> None:
    """An address that looks like an option stays an address."""
    node = Node("n1", "-oProxyCommand=x", via="bastion", port=2222)
    argv = shell_argv(SshSettings(user="ops"), node)
    assert argv[-2:] == ("--", "-oProxyCommand=x")
    assert argv[argv.index("-J") + 1] == "bastion"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the ssh program")
def test_no_agent_is_lent_to_a_node_whatever_the_configuration_says(tmp_path: Path) -> None:
    """As the real ssh understands the command line: what it is told there wins over the file."""
    config = tmp_path / "config"
    config.write_text("Host *\n  ForwardAgent yes\n  ForwardX11 yes\n")
    argv = shell_argv(SshSettings(config_file=config), Node("n1", "192.0.2.1"))
    said = subprocess.run([argv[0], "-G", *argv[1:]], capture_output=True, text=True, check=True)
    assert {"forwardagent no", "forwardx11 no"} <= set(said.stdout.splitlines())
