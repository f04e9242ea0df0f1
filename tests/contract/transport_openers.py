"""Every transport over SSH, opened against one site; one that asks through another fails."""

import contextlib
import dataclasses
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from brctl.fanout.auto_transport import AutoTransport
from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Transport
from brctl.fanout.openssh_transport import OpensshTransport
from brctl.fanout.processes.broker_place import LOCK_NAME
from brctl.fanout.processes.broker_transport import BrokerTransport
from brctl.fanout.processes.spread_transport import SPREAD_OVER, SpreadTransport
from brctl.fanout.ssh_config import HostBlock
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node
from tests.contract.transport_sites import Site

KEEP = 16


class NeverAsked:
    """In the place of the transport that must not be used."""

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Fail: the transport under test was left."""
        raise AssertionError(f"{node.name} was asked through another transport")

    async def close(self) -> None:
        """Nothing was opened."""


def _named(site: Site, name: str) -> Transport:
    return open_transport(dataclasses.replace(site.ssh, transport=name))


@asynccontextmanager
async def _plain(site: Site, name: str) -> AsyncIterator[Transport]:
    opened = _named(site, name)
    yield opened
    await opened.close()


@asynccontextmanager
async def _auto(site: Site, name: str) -> AsyncIterator[Transport]:
    """The client's configuration names other hosts, or all of them."""
    patterns = {"auto": ("elsewhere",), "auto-exact": ("*",)}[name]
    blocks = [HostBlock(patterns, "addressfamily", "ssh_config:1")]
    if name == "auto":
        opened = AutoTransport(_named(site, "asyncssh"), NeverAsked, blocks)
    else:
        opened = AutoTransport(NeverAsked(), lambda: OpensshTransport(site.ssh), blocks)
    yield opened
    await opened.close()


@asynccontextmanager
async def _spread(site: Site, _name: str) -> AsyncIterator[Transport]:
    """Two processes, as for thousands of nodes."""
    ssh = dataclasses.replace(site.ssh, shards=2)
    opened = SpreadTransport(ssh, {}, KEEP, NeverAsked)
    opened.expect(SPREAD_OVER + 1)
    yield opened
    await opened.close()


@asynccontextmanager
async def _broker(site: Site, _name: str) -> AsyncIterator[Transport]:
    """A broker of our own, ended with the block."""
    path = site.folder / "run" / "broker.sock"
    opened = BrokerTransport(site.ssh, {}, path, NeverAsked)
    yield opened
    await opened.close()
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((path.parent / LOCK_NAME).read_text()), signal.SIGKILL)


Opener = Callable[[Site, str], "contextlib.AbstractAsyncContextManager[Transport]"]

SSH_OPENERS: Mapping[str, Opener] = {
    "asyncssh": _plain,
    "openssh": _plain,
    "paramiko": _plain,
    "auto": _auto,
    "auto-exact": _auto,
    "spread": _spread,
    "broker": _broker,
}
"""How a transport that asks over SSH is opened here."""


def open_named(name: str, site: Site) -> "contextlib.AbstractAsyncContextManager[Transport]":
    """The transport of this name, and nothing of it left behind."""
    return SSH_OPENERS[name](site, name)
