"""The connection broker: keeps authenticated connections between brctl commands of one user.

    python -m brctl.fanout.processes.broker SOCKET [IDLE_SECONDS]

Started on demand by `BrokerTransport`; ends by itself when nobody asked for a while. It holds no
state but connections: killing it loses nothing but the time of the next handshakes.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.descriptors import raise_descriptor_limit
from brctl.fanout.gateway.transport import TreeTransport, open_asyncssh
from brctl.fanout.gather import arrived
from brctl.fanout.processes.broker_place import acquire_lock, is_ours, make_private
from brctl.fanout.processes.broker_wire import (
    BrokerReply,
    BrokerRequest,
    read_request,
    send,
    unpack_settings,
)
from brctl.library.own_program import collect_rarely
from brctl.model.errors import BrctlError

IDLE_S = 300.0
KEPT = 4096
"""Connections kept, about 60 KiB each."""

_LOOK_S = 0.5


class Broker:
    """Serves one user's commands over kept connections, one transport per set of settings.

    Args:
        keep: Idle connections kept, for each set of settings.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._transports: dict[bytes, AsyncsshTransport | TreeTransport] = {}
        self._clients = 0
        self.used_at = asyncio.get_running_loop().time()

    def idle_s(self) -> float:
        """Seconds since the last client left; zero while one is there."""
        return 0.0 if self._clients else asyncio.get_running_loop().time() - self.used_at

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client until it leaves; what still runs for it is cancelled then."""
        running: set[asyncio.Task[None]] = set()
        self._clients += 1
        try:
            if is_ours(writer):
                with contextlib.suppress(asyncio.IncompleteReadError, ValueError, OSError):
                    while True:
                        request = await read_request(reader)
                        task = asyncio.create_task(self._answer(request, writer))
                        running.add(task)
                        task.add_done_callback(running.discard)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            writer.close()
            self._clients -= 1
            self.used_at = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Close every kept connection."""
        for transport in self._transports.values():
            await transport.close()

    async def _answer(self, request: BrokerRequest, writer: asyncio.StreamWriter) -> None:
        try:
            transport = self._transport(bytes(request.ssh))
            transport.know(request.jumps)
            reply = BrokerReply(
                request.number, arrived(await transport.run(request.node, request.command))
            )
        except BrctlError as error:  # a key that cannot be read, for one: the asker's to tell
            reply = BrokerReply(request.number, None, str(error), error.hint or "")
        send(writer, reply)
        await writer.drain()

    def _transport(self, packed: bytes) -> AsyncsshTransport | TreeTransport:
        transport = self._transports.get(packed)
        if transport is None:
            ssh = unpack_settings(packed)
            transport = self._transports[packed] = open_asyncssh(ssh, {}, self._keep)
        return transport


async def run_broker(path: Path, idle_s: float) -> None:
    """Serve until idle for so long, or until told to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    broker = Broker(KEPT)
    server = await asyncio.start_unix_server(broker.serve, path)
    try:
        while broker.idle_s() < idle_s and not ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await ended.wait()
    finally:
        server.close()
        await broker.close()


def main(arguments: list[str]) -> None:
    """Serve on a socket unless another broker holds it."""
    path = Path(arguments[0]).absolute()
    os.umask(0o077)
    os.chdir("/")  # no file system is kept busy by a process that waits
    make_private(path.parent)
    lock = acquire_lock(path.parent)
    if lock is None:
        return
    raise_descriptor_limit()
    collect_rarely()
    path.unlink(missing_ok=True)
    try:
        asyncio.run(run_broker(path, float(arguments[1]) if len(arguments) > 1 else IDLE_S))
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrctlError as refused:
        sys.exit(str(refused))
