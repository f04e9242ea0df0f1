"""One command's channel: its input, its bounded output, and how the command ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import asyncssh

UNSENT_BYTES = 1 << 20
"""Input that asyncssh may hold for one node: half of what OpenSSH's sshd takes at once."""


class CommandSession(asyncssh.SSHClientSession[bytes]):
    """Takes at most `limit_bytes` of stdout and of stderr; `ended` is set when nothing more comes.

    Args:
        on_output: Told each piece, and whether it is stderr; without it output is kept here.

    Attributes:
        exit_status: The command's status, or 128 + n when it reported signal n; None when the
            node went away without a word, which asyncssh does not raise.
    """

    def __init__(
        self, limit_bytes: int, on_output: Callable[[bytes, bool], None] | None = None
    ) -> None:
        self._room = {False: limit_bytes, True: limit_bytes}
        self._on_output = on_output
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.exit_status: int | None = None
        self.exit_signal = ""
        self.over_limit = False
        self.error: Exception | None = None
        self.ended = asyncio.Event()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan
        chan.set_write_buffer_limits(UNSENT_BYTES)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def send(self, pieces: AsyncIterator[bytes]) -> None:
        """Give the command its input, no faster than the node takes it."""
        # A command may end without reading its input; its own status tells how.
        with contextlib.suppress(BrokenPipeError):
            async for piece in pieces:
                self._open_channel.write(piece)
                await self._writable.wait()
            self._open_channel.write_eof()

    def send_whole(self, data: bytes) -> None:
        """Give the command all its input at once."""
        with contextlib.suppress(BrokenPipeError):
            self._open_channel.write(data)
            self._open_channel.write_eof()

    def give_up(self) -> None:
        """Ask sshd to end the command, which outlives its channel, and take no more of it.

        An sshd as which root logged in does not; `brctl run` has a watch on the node for that.
        """
        with contextlib.suppress(OSError):
            self._open_channel.terminate()
            self._open_channel.abort()

    @property
    def _open_channel(self) -> asyncssh.SSHClientChannel[bytes]:
        if self._channel is None:
            raise BrokenPipeError
        return self._channel

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        is_stderr = datatype == asyncssh.EXTENDED_DATA_STDERR
        taken = data[: self._room[is_stderr]]
        self._room[is_stderr] -= len(taken)
        if self._on_output is not None:
            self._on_output(taken, is_stderr)
        else:
            kept = self.stderr if is_stderr else self.stdout
            kept += taken
        if len(data) > len(taken):
            self.over_limit = True
            self.ended.set()

    def exit_status_received(self, status: int) -> None:
        self.exit_status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.exit_signal = signal

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
        self._writable.set()
        self.ended.set()
