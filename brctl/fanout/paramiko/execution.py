"""One command on one channel, followed by a thread from its start to its end."""

import contextlib
import select
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator

import paramiko

from brctl.model.command import Command, Outcome

_POLL_S = 0.02
"""Between two looks at what paramiko tells nobody: room for more input, the status after the end of
the output."""

GONE = (paramiko.SSHException, OSError, EOFError)
"""What paramiko raises where the connection of a channel has ended."""

_LOOK_S = 1.0
_CHUNK_BYTES = 1 << 15


class Execution:
    """A command with its input and its bounded output.

    Args:
        client: Logged in.
        command: What to run; its `stdin` is not used.
        take: Told each piece of output, and whether it is stderr, by the thread; what it waits for
            the node waits for.
        sent: Told by the thread each time that all input so far has gone.
    """

    def __init__(
        self,
        client: paramiko.SSHClient,
        command: Command,
        take: Callable[[bytes, bool], None],
        sent: Callable[[], None],
    ) -> None:
        self._client, self._command = client, command
        self._take, self._sent = take, sent
        self._room = dict.fromkeys((False, True), command.output_limit_bytes)
        self._over_limit = False
        self._stop = threading.Event()
        self._unsent = memoryview(b"")
        self._input_ended = False
        self._waker: socket.socket | None = None
        self._waking = threading.Lock()
        self.exit_status: int | None = None

    @property
    def stopped(self) -> bool:
        """Whether nobody wants its output any more."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End the command's channel."""
        self._stop.set()
        self._wake()

    def send(self, piece: bytes) -> None:
        """More input; the next piece only once this one has gone."""
        self._unsent = memoryview(piece)
        self._wake()

    def end_input(self) -> None:
        """No more input comes than is given already."""
        self._input_ended = True
        self._wake()

    def _wake(self) -> None:
        # Under the lock: closed meanwhile, its number could be another file's.
        with self._waking, contextlib.suppress(BlockingIOError):
            if self._waker is not None:
                self._waker.send(b"\0")

    def follow(self, login_timeout_s: float) -> tuple[Outcome, str]:
        """Run to the end, to the deadline, or until there is too much output."""
        try:
            channel = _transport_of(self._client).open_session(timeout=login_timeout_s)
            channel.exec_command(shlex.join(self._command.argv))
        except GONE as exc:
            return Outcome.DIED, f"no session: {exc}"
        deadline = time.monotonic() + self._command.deadline_s
        try:
            with self._wakeable() as woken:
                return self._until_ended(channel, woken, deadline)
        except GONE as exc:
            return Outcome.DIED, f"gone before the command ended: {exc}"
        finally:
            _close(channel)

    @contextlib.contextmanager
    def _wakeable(self) -> Iterator[socket.socket]:
        """A socket that is readable when there is something new from this side."""
        woken, self._waker = socket.socketpair()
        woken.setblocking(False)
        self._waker.setblocking(False)
        try:
            yield woken
        finally:
            with self._waking:
                self._waker.close()
                self._waker = None
            woken.close()

    def _until_ended(
        self, channel: paramiko.Channel, woken: socket.socket, deadline: float
    ) -> tuple[Outcome, str]:
        news = select.poll()
        news.register(channel.fileno(), select.POLLIN)
        news.register(woken, select.POLLIN)
        while time.monotonic() < deadline and not self.stopped:
            moved = self._send(channel) | self._receive(channel)
            if self._over_limit:
                limit = self._command.output_limit_bytes
                return Outcome.OUTPUT_OVER_LIMIT, f"more than {limit} bytes of output"
            ended = channel.exit_status_ready() or channel.closed
            if ended and not moved and (channel.eof_received or channel.closed):
                return self._ending(channel)
            if not moved:
                self._wait(channel, news, woken, deadline)
        return Outcome.COMMAND_TIMED_OUT, f"no end within {self._command.deadline_s:g} s"

    def _wait(
        self,
        channel: paramiko.Channel,
        news: select.poll,
        woken: socket.socket,
        deadline: float,
    ) -> None:
        if channel.eof_received:  # from here on its descriptor is readable for ever
            time.sleep(_POLL_S)
            return
        longest_s = _POLL_S if len(self._unsent) else _LOOK_S
        news.poll(1000 * max(0.0, min(longest_s, deadline - time.monotonic())))
        with contextlib.suppress(BlockingIOError):
            woken.recv(_CHUNK_BYTES)

    def _ending(self, channel: paramiko.Channel) -> tuple[Outcome, str]:
        # -1 is paramiko's word for a channel that ended without a status.
        status = channel.exit_status
        if status < 0:
            return Outcome.DIED, "gone before the command ended: connection closed"
        self.exit_status = status
        return Outcome.ANSWERED, ""

    def _send(self, channel: paramiko.Channel) -> bool:
        # A command may end without reading its input; its own status tells how.
        with contextlib.suppress(OSError):
            if len(self._unsent) and channel.send_ready() and not channel.closed:
                left = self._unsent[channel.send(bytes(self._unsent[:_CHUNK_BYTES])) :]
                self._unsent = left
                if not len(left):
                    self._sent()
                return True
            if self._input_ended and not len(self._unsent) and not channel.eof_sent:
                channel.shutdown_write()
        return False

    def _receive(self, channel: paramiko.Channel) -> bool:
        moved = False
        if channel.recv_ready():
            self._pass_on(channel.recv(_CHUNK_BYTES), is_stderr=False)
            moved = True
        if channel.recv_stderr_ready():
            self._pass_on(channel.recv_stderr(_CHUNK_BYTES), is_stderr=True)
            moved = True
        return moved

    def _pass_on(self, piece: bytes, *, is_stderr: bool) -> None:
        taken = piece[: self._room[is_stderr]]
        self._room[is_stderr] -= len(taken)
        self._over_limit = self._over_limit or len(taken) < len(piece)
        if taken:
            self._take(taken, is_stderr)


def _close(channel: paramiko.Channel) -> None:
    """Close a channel; a connection that ended meanwhile has closed it, and its answer stands."""
    with contextlib.suppress(*GONE):
        channel.close()


def _transport_of(client: paramiko.SSHClient) -> paramiko.Transport:
    transport = client.get_transport()
    if transport is None:
        raise paramiko.SSHException("not connected")
    return transport
