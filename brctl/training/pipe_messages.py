"""Messages in a pipe whose writer may stop in the middle of one: read in pieces, by a deadline.

`Connection.recv_bytes` waits for ever for the rest of a message once its first byte is there.
"""

import os
import struct
import time
from multiprocessing.connection import Connection

_SIZE = struct.Struct("!Q")
_PIECE_BYTES = 1 << 20


def send_message(out: Connection, message: bytes) -> None:
    """Write it whole; waits while the pipe is full."""
    for part in (_SIZE.pack(len(message)), message):
        left = memoryview(part)
        while left:
            left = left[os.write(out.fileno(), left) :]


def receive_message(items: Connection, within_s: float) -> bytes:
    """The next whole message.

    Raises:
        TimeoutError: It was not there in time, or only a part of it.
        EOFError: Its writer is gone.
        OSError: The pipe cannot be read.
    """
    deadline = time.monotonic() + within_s
    (size,) = _SIZE.unpack(_read(items, _SIZE.size, deadline))
    return _read(items, size, deadline)


def _read(items: Connection, size: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < size:
        if not items.poll(max(0.0, deadline - time.monotonic())):
            raise TimeoutError(f"{len(found)} of {size} bytes came in time")
        piece = os.read(items.fileno(), min(size - len(found), _PIECE_BYTES))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)
