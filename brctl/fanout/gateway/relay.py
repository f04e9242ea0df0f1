"""One gateway's program and the conversation with it: orders out, answers in."""

import asyncio
import contextlib
import json
import secrets
import shlex
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import asyncssh

from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.contract import HELD_STDERR_BYTES, LoginFailedError, Streams
from brctl.fanout.gateway.frames import Frame, Frames, GatewayError
from brctl.fanout.streaming import beside
from brctl.library.shipped import node_program
from brctl.model.command import Command
from brctl.model.inventory import Node

SILENT_S = 15.0
"""The program says something every two seconds; a gateway silent for so long is dead."""

_SHARED_BYTES = 1024
"""What commands have in common at their beginning travels once from this size on."""

_PIECE_BYTES = 64 << 10
"""Input of a held command that the gateway has to keep at once."""

_BOOT = (
    "import sys,zlib\n"
    "r=sys.stdin.buffer.raw\n"
    "def take(n):\n"
    " b=b''\n"
    " while len(b)<n:\n"
    "  d=r.read(n-len(b))\n"
    "  if not d: sys.exit(1)\n"
    "  b+=d\n"
    " return b\n"
    "p=zlib.decompress(take(int(sys.argv[1])))\n"
    "exec(compile(p,'gateway','exec'),{'__name__':'__main__','AT_ONCE':int(sys.argv[2])})"
)

Result = tuple[Frame, bytes, bytes]


class RelayLostError(Exception):
    """The gateway is gone or cannot be believed; the message says why."""


@dataclass(slots=True)
class _Asked:
    """What became so far of one order.

    Attributes:
        room: Bytes of stdout that it may still say.
        on_output: Where a held command's stdout goes as it comes.
        fed: Set while the gateway takes more input for it.
    """

    room: int
    answer: asyncio.Future[Result]
    on_output: Callable[[bytes, bool], None] | None = None
    fed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, frame: Frame, stdout: bytes, stderr: bytes) -> None:
        """What the gateway says about it.

        Raises:
            GatewayError: A held command said more than the gateway was told to let through.
        """
        if self.answer.done():
            return
        if self.on_output is not None:
            self.room -= len(stdout)
            if self.room < 0:
                raise GatewayError("an answer over its limit")
            self.on_output(stdout, False)
            stdout = b""
        if frame.fed:
            self.fed.set()
        elif not frame.piece:
            self.answer.set_result((frame, stdout, stderr))


class GatewayRelay(asyncssh.SSHClientSession[bytes]):
    """Asks one gateway to run commands on nodes behind it.

    Args:
        limit_bytes: Most output of one stream of one command.
    """

    def __init__(self, gateway: Node, limit_bytes: int) -> None:
        self._gateway = gateway
        self._frames = Frames(limit_bytes)
        self._asked: dict[int, _Asked] = {}
        self._count = 0
        self._blob = b""
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._stderr = bytearray()
        self.lost = ""

    async def open(self, transport: AsyncsshTransport, at_once: int) -> None:
        """Start the program on the gateway.

        Raises:
            RelayLostError: It cannot be reached.
        """
        program = zlib.compress(node_program("_gateway.py").encode(), 9)
        argv = (self._gateway.python, "-I", "-S", "-B", "-c", _BOOT)
        line = shlex.join((*argv, str(len(program)), str(at_once)))
        try:
            self._channel = await transport.open_stream(self._gateway, line, self)
        except LoginFailedError as failed:
            raise RelayLostError(failed.detail) from failed
        self._channel.write(program)
        self._rewind()

    async def ask(self, argv: tuple[str, ...], command: Command, login_s: float) -> Result:
        """Run one `ssh` on the gateway; the command's own words are added to argv here.

        Raises:
            RelayLostError: The gateway went away before the node's answer was here.
        """
        async with self._order(argv, command, login_s, {}, None) as (mark, _, asked):
            frame, stdout, stderr = await asked.answer
        return frame, stdout, unwrap(frame, stderr, mark)

    async def hold(
        self, argv: tuple[str, ...], command: Command, login_s: float, streams: Streams
    ) -> Result:
        """As `ask`, for a command whose input and stdout pass on while it runs.

        Raises:
            RelayLostError: The gateway went away before the command ended.
        """
        pieces = streams.stdin()
        first = replace(command, stdin=await anext(pieces, b""))
        held = {"held": True, "stderr_limit": HELD_STDERR_BYTES}
        opened = self._order(argv, first, login_s, held, streams.on_output)
        async with opened as (mark, number, asked):
            feeding = self._feed(number, asked, pieces)
            frame, stdout, stderr = await beside(feeding, asked.answer)
        return frame, stdout, unwrap(frame, stderr, mark)

    @contextlib.asynccontextmanager
    async def _order(
        self,
        argv: tuple[str, ...],
        command: Command,
        login_s: float,
        about: Mapping[str, object],
        on_output: Callable[[bytes, bool], None] | None,
    ) -> AsyncIterator[tuple[str, int, _Asked]]:
        """One order, ended on the gateway where it is left before its answer."""
        if self.lost or self._channel is None:
            raise RelayLostError(self.lost)
        self._count += 1
        number, mark = self._count, secrets.token_hex(8)
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        asked = self._asked[number] = _Asked(command.output_limit_bytes, answer, on_output)
        order = {
            "number": number, "argv": [*argv, wrap(command.argv, mark)], "mark": mark,
            "login_s": login_s, "deadline_s": command.deadline_s,
            "limit": command.output_limit_bytes, **about,
        }  # fmt: skip
        self._send(order, command.stdin)
        try:
            yield mark, number, asked
        except BaseException:
            self._write({"cancel": number}, b"")
            raise
        finally:
            del self._asked[number]

    async def _feed(self, number: int, asked: _Asked, pieces: AsyncIterator[bytes]) -> None:
        """Pass input on, no faster than the command reads: one piece is on its way at a time."""
        async for piece in pieces:
            for at in range(0, len(piece), _PIECE_BYTES):
                await self._feed_one(number, asked, piece[at : at + _PIECE_BYTES], last=False)
        await self._feed_one(number, asked, b"", last=True)

    async def _feed_one(self, number: int, asked: _Asked, piece: bytes, *, last: bool) -> None:
        await asked.fed.wait()
        asked.fed.clear()
        self._write({"feed": number, "last": last}, piece)

    def close(self) -> None:
        """End the program; it ends what it runs."""
        self._lose("closed")
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.close()

    def _send(self, order: dict[str, Any], stdin: bytes) -> None:
        """What this command reads and the one before read too is not sent again."""
        head = common_bytes(self._blob, stdin)
        if head < _SHARED_BYTES and len(stdin) >= _SHARED_BYTES:
            self._blob, head = stdin, len(stdin)
            self._write({"blob": 1}, stdin)
        self._write({**order, "head": head}, stdin[head:])

    def _write(self, order: dict[str, Any], payload: bytes) -> None:
        if self._channel is not None and not self.lost:
            line = json.dumps({**order, "bytes": len(payload)}).encode()
            self._channel.write(line + b"\n" + payload)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self._stderr = (self._stderr + data)[-2048:]
            return
        self._rewind()
        try:
            for frame, stdout, stderr in self._frames.feed(data):
                asked = self._asked.get(frame.number) if frame.number is not None else None
                if asked is not None:
                    asked.take(frame, stdout, stderr)
        except GatewayError as error:
            self._lose(f"it sent {error}")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        last = self._stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = str(exc) if exc else "its program ended"
        self._lose(f"{why}: {last[0][:200]}" if last else why)

    def _rewind(self) -> None:
        """Set the watch anew: the gateway is alive now."""
        if self._watch is not None:
            self._watch.cancel()
        if not self.lost:
            loop = asyncio.get_running_loop()
            self._watch = loop.call_later(SILENT_S, self._lose, f"silent for {SILENT_S:g} s")

    def _lose(self, why: str) -> None:
        self.lost = self.lost or why
        if self._watch is not None:
            self._watch.cancel()
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(RelayLostError(self.lost))


def common_bytes(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def wrap(argv: tuple[str, ...], mark: str) -> str:
    """The remote command line: it marks begin and end on stderr.

    `ssh` exits 255 for its own failures and for a command's 255; the mark tells them apart.
    """
    script = f'echo {mark} >&2; "$0" "$@"; s=$?; echo {mark} $s >&2; exit $s'
    return shlex.join(("sh", "-c", script, *argv))


def unwrap(frame: Frame, stderr: bytes, mark: str) -> bytes:
    """What the command itself said on stderr; the frame's status becomes the command's own.

    Without the end mark the status is None: the connection broke before the command ended.
    """
    before, begun, rest = stderr.partition(mark.encode() + b"\n")
    if not begun:
        frame.begun = False
        return before
    own_stderr, ended, status = rest.rpartition(mark.encode() + b" ")
    if ended and status.strip().isdigit() and len(status) <= 4:
        frame.status = int(status)
        return own_stderr
    frame.status = None
    return rest
