"""The fan-out transport: asyncssh with one prepared set of options and one connection per node."""

import asyncio
import contextlib
import shlex
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import asyncssh

from brctl.fanout.asyncssh.connected_socket import ConnectedSocket, connect_socket
from brctl.fanout.asyncssh.executor import build_options_here
from brctl.fanout.asyncssh.options import prepare_options
from brctl.fanout.asyncssh.outcomes import command_outcome, login_outcome
from brctl.fanout.asyncssh.resolver import Resolver
from brctl.fanout.asyncssh.session import CommandSession
from brctl.fanout.connect_backoff import ConnectBackoff
from brctl.fanout.contract import LoginFailedError, Streams
from brctl.fanout.idle import Idle
from brctl.fanout.pacing import Pace
from brctl.fanout.streaming import beside
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node

LOGIN_TRIES = 3
"""sshd drops logins at random above MaxStartups; a healthy node must not look dead for that."""

KEEPALIVE_S, KEEPALIVES_LOST = 5.0, 2
"""A node that lost power mid-command is known after 20 s. A command that ends before the first one
would be due costs none, and an idle connection leaves it to TCP: 1,000 of them cost nothing."""

_BACKOFF_S = 0.2
_NO_NAME = "its name was not resolved by then"
_NO_NODES: Mapping[str, Node] = MappingProxyType({})


class AsyncsshTransport:
    """Runs commands over SSH; every node keeps one connection until `close`.

    Args:
        ssh: Deadlines, user, keys and known_hosts.
        nodes: The inventory, to find the addresses of nodes that others jump through.
        keep: How many idle connections are kept; 0 for one command on each node.
    """

    def __init__(
        self, ssh: SshSettings, nodes: Mapping[str, Node] = _NO_NODES, *, keep: int = 1024
    ) -> None:
        self._ssh = ssh
        self._idle = Idle(keep)
        self._pace = Pace(ssh.fanout, ssh.login_timeout_s)
        self._backoff = ConnectBackoff(ssh.connect_timeout_s)
        self._resolver = Resolver()
        self._nodes = dict(nodes)
        self._prepared: asyncio.Task[asyncssh.SSHClientConnectionOptions] | None = None
        self._connections: dict[str, asyncssh.SSHClientConnection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._handshakes: dict[str, asyncio.Semaphore] = {}

    def know(self, nodes: Iterable[Node]) -> None:
        """Nodes that others jump through, by the inventory of whoever asks."""
        self._nodes.update((node.name, node) for node in nodes)

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        return await self._ask(node, command, CommandSession(command.output_limit_bytes), None)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Run a command and pass on what comes and goes; see `Streaming.stream`."""
        session = CommandSession(command.output_limit_bytes, streams.on_output)
        return await self._ask(node, command, session, streams)

    async def _ask(
        self, node: Node, command: Command, session: CommandSession, streams: Streams | None
    ) -> CommandResult:
        started = time.perf_counter()
        self._idle.claim(node.name)
        try:
            connection = await self._start(node, command, session)
            ending = self._finish(node, command, connection, session)
            if streams is None:
                session.send_whole(command.stdin)
                outcome, detail = await ending
            else:
                outcome, detail = await beside(session.send(streams.stdin()), ending)
        except LoginFailedError as failed:
            outcome, detail = failed.outcome, failed.detail
        finally:
            for name in self._idle.release(node.name):
                self._drop(name)
        return CommandResult(
            node=node.name,
            outcome=outcome,
            exit_status=_exit_status(session) if outcome is Outcome.ANSWERED else None,
            stdout=bytes(session.stdout),
            stderr=bytes(session.stderr),
            seconds=time.perf_counter() - started,
            detail=detail,
        )

    def gateway(self, name: str) -> Node:
        """The node that others are reached through, of the inventory or as `[user@]host[:port]`."""
        return self._nodes.get(name) or jump_node(name)

    async def open_stream(
        self, node: Node, line: str, session: asyncssh.SSHClientSession[bytes]
    ) -> asyncssh.SSHClientChannel[bytes]:
        """A command line that stays and is talked to; its connection is kept as long as we are.

        Raises:
            LoginFailedError: The node cannot be logged in to.
        """
        self._refuse_circle(node)
        connection = await self._connection(node)
        self._idle.claim(node.name)
        _keep_alive(connection)
        try:
            async with self._pace.deadline(self._ssh.login_timeout_s):
                channel, _ = await connection.create_session(
                    lambda: session, line, encoding=None, request_pty=False
                )
        except TimeoutError as exc:
            detail = f"no session within {self._ssh.login_timeout_s:g} s after login"
            raise LoginFailedError(Outcome.LOGIN_TIMED_OUT, detail) from exc
        except (asyncssh.Error, OSError) as exc:
            raise LoginFailedError(*command_outcome(exc)) from exc
        return channel

    def was_silent(self, node: str, since: float) -> None:
        """See `Remembering`."""
        self._backoff.remember(node, since)

    async def close(self) -> None:
        """Close every connection; nothing waits for a node that does not answer."""
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in reversed(connections):
            connection.abort()
        await asyncio.gather(*(c.wait_closed() for c in connections), return_exceptions=True)

    async def _start(
        self, node: Node, command: Command, session: CommandSession
    ) -> asyncssh.SSHClientConnection:
        """Open the channel; a kept connection that died since its last use is replaced once."""
        self._refuse_circle(node)
        reused = node.name in self._connections
        connection = await self._connection(node)
        try:
            await self._open_channel(connection, command, session)
        except LoginFailedError:
            self._drop(node.name)
            if not reused:
                raise
            connection = await self._connection(node)
            await self._open_channel(connection, command, session)
        return connection

    async def _open_channel(
        self, connection: asyncssh.SSHClientConnection, command: Command, session: CommandSession
    ) -> None:
        limit_s = self._ssh.login_timeout_s
        try:
            async with self._pace.deadline(limit_s):
                await connection.create_session(
                    lambda: session,
                    shlex.join(command.argv),
                    encoding=None,
                    request_pty=False,
                )
        except TimeoutError as exc:
            detail = f"no session within {limit_s:g} s after login"
            raise LoginFailedError(Outcome.LOGIN_TIMED_OUT, detail) from exc
        except (asyncssh.Error, OSError) as exc:
            raise LoginFailedError(*command_outcome(exc)) from exc

    async def _finish(
        self,
        node: Node,
        command: Command,
        connection: asyncssh.SSHClientConnection,
        session: CommandSession,
    ) -> tuple[Outcome, str]:
        finished = False
        try:
            with self._watched(node.name, connection):
                async with asyncio.timeout(command.deadline_s):
                    await session.ended.wait()
            finished = not session.over_limit
        except TimeoutError:
            return Outcome.COMMAND_TIMED_OUT, f"no end within {command.deadline_s:g} s"
        finally:
            if not finished:
                session.give_up()
                # Over a shared one a watcher may hold a look, or the nodes behind a gateway talk.
                if not self._idle.shared(node.name):
                    self._drop(node.name, connection)
        return _ending(command, session)

    @contextlib.contextmanager
    def _watched(self, name: str, connection: asyncssh.SSHClientConnection) -> Iterator[None]:
        """Ask a node that is silent for long whether it is still there."""
        loop = asyncio.get_running_loop()
        due_at = loop.time() + KEEPALIVE_S
        first = loop.call_at(due_at, _keep_alive, connection)
        try:
            yield
        finally:
            first.cancel()
            if loop.time() >= due_at and not self._idle.shared(name):
                connection.set_keepalive(0)

    def _drop(self, name: str, connection: asyncssh.SSHClientConnection | None = None) -> None:
        kept = self._connections.get(name)
        if kept is not None and connection in (None, kept):
            del self._connections[name]
            kept.abort()

    async def _connection(self, node: Node) -> asyncssh.SSHClientConnection:
        asked_at = asyncio.get_running_loop().time()
        async with self._locks.setdefault(node.name, asyncio.Lock()):
            kept = self._connections.get(node.name)
            if kept is not None and not kept.is_closed():
                return kept
            waited = self._backoff.meanwhile(node.name, asked_at)
            if waited:
                raise _silent(node, waited)
            connection = await self._login_with_retries(node)
            self._connections[node.name] = connection
            return connection

    async def _login_with_retries(self, node: Node) -> asyncssh.SSHClientConnection:
        """A node that dropped the login, or was late when all nodes were, is asked again."""
        for attempt in range(1, LOGIN_TRIES + 1):
            began = asyncio.get_running_loop().time()
            try:
                return await self._login(node)
            except asyncssh.ConnectionLost as exc:
                if attempt == LOGIN_TRIES:
                    detail = f"closed the connection during login, {LOGIN_TRIES} times"
                    raise LoginFailedError(Outcome.REFUSED, detail) from exc
            except LoginFailedError as failed:
                late = failed.outcome is Outcome.LOGIN_TIMED_OUT and self._pace.shrunk_since(began)
                if not late or attempt == LOGIN_TRIES:
                    raise
            await asyncio.sleep(_BACKOFF_S * attempt)
        raise AssertionError("unreachable")

    async def _login(self, node: Node) -> asyncssh.SSHClientConnection:
        if self._prepared is None:
            build_options_here()
            self._prepared = asyncio.ensure_future(prepare_options(self._ssh))
        try:
            options = await asyncio.shield(self._prepared)
        except ConfigError:
            self._prepared = None  # a broker lives on, and the file may be put right
            raise
        if node.via:
            return await self._login_through(node, options)
        return await self._login_direct(node, options)

    async def _login_direct(
        self, node: Node, options: asyncssh.SSHClientConnectionOptions
    ) -> asyncssh.SSHClientConnection:
        now, found = asyncio.get_running_loop().time, False
        deadline_s = self._backoff.deadline_s(node.name, now())
        try:
            async with self._pace.deadline(deadline_s):
                addresses = await self._resolver.addresses(node.address, node.port)
                found = True
                sock = await connect_socket(addresses)
        except TimeoutError as exc:
            waited = self._backoff.keep(node.name, deadline_s, now())
            raise _silent(node, waited if found else f"{waited}: {_NO_NAME}") from exc
        except OSError as exc:
            outcome, detail = login_outcome(exc)
            if outcome is Outcome.REFUSED:
                self._backoff.forget(node.name)
            address = f"{node.address}:{node.port}"
            raise LoginFailedError(outcome, f"{address}: {detail}") from exc
        self._backoff.forget(node.name)
        connected = ConnectedSocket(sock)
        try:
            return await self._handshake(node, options, connected)
        finally:
            connected.close()

    async def _login_through(
        self, node: Node, options: asyncssh.SSHClientConnectionOptions
    ) -> asyncssh.SSHClientConnection:
        jump = self.gateway(node.via)
        slots = asyncio.Semaphore(self._ssh.handshakes_per_jump)
        async with self._handshakes.setdefault(node.via, slots):
            try:
                tunnel = await self._connection(jump)
                self._idle.claim(jump.name)
                _keep_alive(tunnel)
            except LoginFailedError as failed:
                detail = f"jump host {node.via}: {failed.detail}"
                raise LoginFailedError(Outcome.UNREACHABLE, detail) from failed
            return await self._handshake(node, options, tunnel)

    def _refuse_circle(self, node: Node) -> None:
        """Two nodes that jump through each other would wait for each other for ever."""
        chain = [node.name]
        while node.via:
            node = self.gateway(node.via)
            chain.append(node.name)
            if node.name in chain[:-1]:
                detail = f"jump hosts form a circle: {' -> '.join(chain)}"
                raise LoginFailedError(Outcome.UNREACHABLE, detail)

    async def _handshake(
        self,
        node: Node,
        options: asyncssh.SSHClientConnectionOptions,
        tunnel: ConnectedSocket | asyncssh.SSHClientConnection,
    ) -> asyncssh.SSHClientConnection:
        limit_s = self._ssh.login_timeout_s
        try:
            async with self._pace.login():
                return await asyncssh.connect(
                    node.address,
                    node.port,
                    options=options,
                    config=None,
                    tunnel=tunnel,
                    username=node.user or self._ssh.user or (),
                )
        except TimeoutError as exc:
            detail = f"{node.address}:{node.port} took the connection but no login in {limit_s:g} s"
            raise LoginFailedError(Outcome.LOGIN_TIMED_OUT, detail) from exc
        except asyncssh.ConnectionLost:
            raise
        except (asyncssh.Error, OSError) as exc:
            outcome, detail = login_outcome(exc)
            if outcome is Outcome.REFUSED:
                self._backoff.forget(node.name)
            address = f"{node.address}:{node.port}"
            raise LoginFailedError(outcome, f"{address}: {detail}") from exc


def _silent(node: Node, waited: str) -> LoginFailedError:
    detail = f"no TCP connection to {node.address}:{node.port} {waited}"
    return LoginFailedError(Outcome.CONNECT_TIMED_OUT, detail)


def jump_node(text: str) -> Node:
    """The node meant by `[user@]host[:port]`.

    Examples:
        >>> jump_node("ops@bastion:2222").port
        2222
    """
    user, _, address = text.rpartition("@")
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and ":" not in host:
        return Node(name=text, address=host, port=int(port), user=user)
    return Node(name=text, address=address.strip("[]"), user=user)


def _keep_alive(connection: asyncssh.SSHClientConnection) -> None:
    connection.set_keepalive(KEEPALIVE_S, KEEPALIVES_LOST)


def _exit_status(session: CommandSession) -> int | None:
    if session.exit_signal:
        with contextlib.suppress(KeyError):
            return 128 + signal.Signals[f"SIG{session.exit_signal}"]
        return 128
    return session.exit_status


def _ending(command: Command, session: CommandSession) -> tuple[Outcome, str]:
    if session.over_limit:
        limit = command.output_limit_bytes
        return Outcome.OUTPUT_OVER_LIMIT, f"more than {limit} bytes of output"
    if session.exit_status is None and not session.exit_signal:
        reason = command_outcome(session.error)[1] if session.error else "connection closed"
        return Outcome.DIED, f"gone before the command ended: {reason}"
    return Outcome.ANSWERED, f"ended by SIG{session.exit_signal}" if session.exit_signal else ""
