"""A TCP connection under asyncssh that sends what one turn of the event loop wrote in one piece.

asyncssh writes every packet by itself, and one of no content before each that is encrypted: 17
system calls a login, of which 7 are needed. It takes the connection below it from any object that
has `create_connection`, which is how its own tunnels work too.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from typing import Any

from brctl.fanout.asyncssh.resolver import Address

READ_BYTES = 1 << 16
_PROBES = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""The kernel finds within half a minute that the peer of an idle connection is gone."""


class TcpTransport(asyncio.Transport):
    """A connected socket; writes wait for the end of the loop's turn and then go out together."""

    def __init__(self, sock: socket.socket, protocol: asyncio.Protocol) -> None:
        super().__init__({"socket": sock, "peername": sock.getpeername()})
        self._sock = sock
        # By number: for a socket object the selector writes its repr into an error it then drops.
        self._fd = sock.fileno()
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._flushing = False
        self._closed = False
        self._loop.add_reader(self._fd, self._read)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Queue bytes; they are sent when the loop comes round."""
        self._unsent += data
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def get_write_buffer_size(self) -> int:
        """Bytes the kernel did not take yet."""
        return len(self._unsent)

    def is_closing(self) -> bool:
        """Whether nothing more is sent or read."""
        return self._closed

    def close(self) -> None:
        """Send what is left if the kernel takes it at once, and close."""
        self._flush()
        self.abort()

    def abort(self) -> None:
        """Close now; the protocol is told in the loop's next turn."""
        self._end(None)

    def _flush(self) -> None:
        if self._closed or not self._unsent:
            self._flushing = False
            return
        try:
            sent = self._sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as exc:
            self._end(exc)
            return
        del self._unsent[:sent]
        if self._unsent:
            self._loop.add_writer(self._fd, self._flush_rest)
        else:
            self._flushing = False

    def _flush_rest(self) -> None:
        self._loop.remove_writer(self._fd)
        self._flush()

    def _read(self) -> None:
        try:
            data = self._sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as exc:
            self._end(exc)
            return
        if data:
            self._protocol.data_received(data)
        else:
            self._protocol.eof_received()
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._fd)
        if self._unsent:
            self._loop.remove_writer(self._fd)
            self._unsent.clear()
        self._loop.call_soon(self._protocol.connection_lost, error)
        self._sock.close()


class ConnectedSocket:
    """What asyncssh is given as `tunnel`: a socket that is connected already."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._taken = False

    async def create_connection(
        self, session_factory: Callable[..., Any], _host: str, _port: int
    ) -> tuple[TcpTransport, asyncio.Protocol]:
        """Put an SSH connection on the socket, which owns it from here."""
        self._taken = True
        session = session_factory()
        transport = TcpTransport(self._sock, session)
        session.connection_made(transport)
        return transport, session

    def close(self) -> None:
        """Close a socket that no connection took."""
        if not self._taken:
            with contextlib.suppress(OSError):
                self._sock.close()

    async def wait_closed(self) -> None:
        """Closing takes no time."""


async def connect_socket(addresses: Iterable[Address]) -> socket.socket:
    """A TCP connection to the first of a node's addresses that takes one."""
    loop = asyncio.get_running_loop()
    failure: OSError = OSError("name has no address")
    for family, address in addresses:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        _probe_when_idle(sock)
        try:
            await loop.sock_connect(sock, address)
        except OSError as exc:
            sock.close()
            failure = exc
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _probe_when_idle(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _PROBES:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
