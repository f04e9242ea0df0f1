"""What every login offers, and where its options are built."""

import asyncio
import shutil
import subprocess
import threading
from functools import partial

import asyncssh
import pytest

from brctl.fanout.asyncssh.executor import build_options_here
from brctl.fanout.asyncssh.options import CIPHERS, KEX, MACS


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client")
@pytest.mark.parametrize(
    ("key", "names"),
    [("kexalgorithms", KEX), ("ciphers", CIPHERS), ("macs", MACS)],
)
def test_nothing_is_offered_that_openssh_would_not(key: str, names: tuple[str, ...]) -> None:
    """The installed client's defaults are the bound; ours may only be fewer."""
    done = subprocess.run(
        ["ssh", "-F", "none", "-G", "anywhere"], capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith(f"{key} "))
    assert set(names) <= set(line.split()[1].split(","))


async def test_options_are_built_in_place_and_all_else_in_threads() -> None:
    """A name's lookup may block; building options may not, and their errors arrive as before."""
    build_options_here()
    loop = asyncio.get_running_loop()
    elsewhere = await loop.run_in_executor(None, threading.get_ident)
    assert elsewhere != threading.get_ident()
    make = partial(asyncssh.SSHClientConnectionOptions, username="root", client_keys=None)
    made = await loop.run_in_executor(None, make)
    assert isinstance(made, asyncssh.SSHClientConnectionOptions)
    with pytest.raises(ValueError, match="no-such-cipher"):
        await asyncssh.SSHClientConnectionOptions.construct(encryption_algs=["no-such-cipher"])
