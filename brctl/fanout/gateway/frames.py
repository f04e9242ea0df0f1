"""What a gateway sends back: a line of JSON and the bytes it announces, from a machine not trusted.

A gateway may babble, lie or break off. What is read is bounded, known and of the right type, or the
conversation ends with GatewayError.
"""

from collections.abc import Iterator

import msgspec

PROTOCOL = "brctl-gateway "
HELLO = PROTOCOL + "2"
LINE_LIMIT_BYTES = 4096
GREETING_LIMIT_BYTES = 1 << 16
"""What a login shell may print before the program speaks."""


class GatewayError(Exception):
    """The gateway sent what it may not; never leaves the fan-out."""


class Frame(msgspec.Struct):
    """One answer of a node as the gateway saw it, a part of a held one, or a sign of life.

    Attributes:
        fed: All input that we sent to a held command went to it.
        piece: More of a held command's stdout; it goes on.
        status: What `ssh` exited with, minus its signal; None when it could not be started.
        begun: Whether the node logged us in and began.
        late: Killed at the deadline that applied.
        over: Killed for too much output.
        stdout: Bytes of it that follow the line; then those of stderr.
    """

    hello: str = ""
    beat: int | None = None
    number: int | None = None
    fed: bool = False
    piece: bool = False
    status: int | None = None
    begun: bool = False
    late: bool = False
    over: bool = False
    stdout: int = 0
    stderr: int = 0


_decoder = msgspec.json.Decoder(Frame)


class Frames:
    """Bytes in, whole frames out.

    Args:
        limit_bytes: Most that one stream of one answer may hold.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.greeted = False
        self._kept = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Frame, bytes, bytes]]:
        """Frames that are whole now, with stdout and stderr.

        Raises:
            GatewayError: This is no answer of the program we sent.
        """
        self._kept += data
        while True:
            if not self.greeted and not self._greet():
                return
            found = self._next()
            if found is None:
                return
            yield found

    def _greet(self) -> bool:
        """Skip what the login shell printed, up to the program's first line."""
        hello = b'{"hello": "%s"}\n' % HELLO.encode()
        at = self._kept.find(hello)
        if at < 0:
            other = self._kept.find(b'{"hello": "%s' % PROTOCOL.encode())
            line, whole, _ = self._kept[other:].partition(b"\n") if other >= 0 else (b"", b"", b"")
            if whole:
                said = line[:80].decode("utf-8", "replace")
                raise GatewayError(f"{said!r}, and we speak {HELLO}")
            if len(self._kept) > GREETING_LIMIT_BYTES:
                raise GatewayError("much output before the program started")
            return False
        del self._kept[: at + len(hello)]
        self.greeted = True
        return True

    def _next(self) -> tuple[Frame, bytes, bytes] | None:
        end = self._kept.find(b"\n")
        if end < 0:
            if len(self._kept) > LINE_LIMIT_BYTES:
                raise GatewayError("a line without end")
            return None
        try:
            frame = _decoder.decode(self._kept[:end])
        except ValueError as exc:
            raise GatewayError("a line that is no answer") from exc
        if not (0 <= frame.stdout <= self.limit_bytes and 0 <= frame.stderr <= self.limit_bytes):
            raise GatewayError("an answer over its limit")
        start, whole = end + 1, end + 1 + frame.stdout + frame.stderr
        if len(self._kept) < whole:
            return None
        stdout = bytes(self._kept[start : start + frame.stdout])
        stderr = bytes(self._kept[start + frame.stdout : whole])
        del self._kept[:whole]
        return frame, stdout, stderr
