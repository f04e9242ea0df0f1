"""The interactive shell, over a real terminal pair and a real SSH server."""

import asyncio
import os
import pty
from pathlib import Path

from brctl.fanout.openssh_transport import shell_argv
from brctl.fanout.paramiko.shell import open_shell
from brctl.library.config import SshSettings
from brctl.model.command import Outcome
from brctl.model.inventory import Node
from tests.contract.transport_sites import SSHD, open_site


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
            async with asyncio.timeout(20):
                assert await shell == (Outcome.ANSWERED, 7)
            assert b"together" in os.read(screen, 1 << 16)
        finally:
            for descriptor in (own, others, screen, shown):
                os.close(descriptor)


def test_the_ssh_program_gets_arguments_and_no_shell() -> None:
    """An address that looks like an option stays an address."""
    node = Node("n1", "-oProxyCommand=x", via="bastion", port=2222)
    argv = shell_argv(SshSettings(user="ops"), node)
    assert argv[-2:] == ("--", "-oProxyCommand=x")
    assert argv[argv.index("-J") + 1] == "bastion"
