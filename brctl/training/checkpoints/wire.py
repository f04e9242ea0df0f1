"""What helpers of different machines say to each other: bounded frames between proven partners.

A frame is four bytes of length and a JSON object. Both ends prove that they hold the attempt's key
by an HMAC over both ends' random numbers; before that a frame is at most 512 bytes.
"""

import hashlib
import hmac
import json
import os
import secrets
import socket
from pathlib import Path

_UNPROVEN_BYTES, _FRAME_BYTES = 512, 64 << 10
NONCE_BYTES = 32
CHUNK_BYTES = 1 << 20

Frame = dict[str, object]


class PeerError(Exception):
    """The other end is gone, too slow, not who it should be, or says nonsense."""


def new_key() -> str:
    """A key for one attempt, in hexadecimal digits."""
    return secrets.token_hex(32)


def write_key(path: Path, key: str) -> None:
    """Leave the key to this machine's helper, readable by this user only."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(key)


def read_key(path: Path) -> bytes:
    """The key as `write_key` left it."""
    return bytes.fromhex(path.read_text())


class Connection:
    """One proven connection."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link

    @classmethod
    def connect(cls, address: tuple[str, int], key: bytes, timeout_s: float) -> "Connection":
        """Reach another helper.

        Raises:
            PeerError: Nobody answers in time, or not with the key.
        """
        try:
            link = socket.create_connection(address, timeout=timeout_s)
        except OSError as exc:
            raise PeerError(f"{address[0]}:{address[1]}: {exc}") from exc
        return cls(link)._prove(key, b"asks", b"answers")

    @classmethod
    def accept(cls, link: socket.socket, key: bytes, timeout_s: float) -> "Connection":
        """Let another helper in.

        Raises:
            PeerError: It does not prove itself in time.
        """
        link.settimeout(timeout_s)
        return cls(link)._prove(key, b"answers", b"asks")

    def send(self, frame: Frame) -> None:
        """Write one frame.

        Raises:
            PeerError: The other end is gone.
        """
        text = json.dumps(frame).encode()
        self.send_bytes(memoryview(len(text).to_bytes(4, "big") + text))

    def receive(self, limit_bytes: int = _FRAME_BYTES) -> Frame:
        """Read one frame.

        Raises:
            PeerError: The other end is gone, late, or sends no JSON object of that size.
        """
        length = int.from_bytes(self._exactly(4), "big")
        if length > limit_bytes:
            raise PeerError(f"a frame of {length} bytes; at most {limit_bytes} are read")
        try:
            frame = json.loads(self._exactly(length))
        except (ValueError, RecursionError) as exc:
            raise PeerError("a frame that is no JSON") from exc
        if not isinstance(frame, dict):
            raise PeerError("a frame that is no JSON object")
        return frame

    def send_bytes(self, payload: memoryview) -> None:
        """Write a payload.

        Raises:
            PeerError: The other end is gone or takes nothing.
        """
        try:
            for start in range(0, len(payload), CHUNK_BYTES):
                self._link.sendall(payload[start : start + CHUNK_BYTES])
        except OSError as exc:
            raise PeerError(f"while sending: {exc}") from exc

    def receive_into(self, target: memoryview) -> None:
        """Fill `target`.

        Raises:
            PeerError: The other end is gone or silent.
        """
        filled = 0
        while filled < len(target):
            try:
                got = self._link.recv_into(target[filled:], min(len(target) - filled, CHUNK_BYTES))
            except OSError as exc:
                raise PeerError(f"while receiving: {exc}") from exc
            if got == 0:
                raise PeerError("the connection was closed")
            filled += got

    def set_timeout(self, timeout_s: float) -> None:
        """How long to wait for the other end from now on."""
        self._link.settimeout(timeout_s)

    def close(self) -> None:
        self._link.close()

    def _prove(self, key: bytes, own_label: bytes, peer_label: bytes) -> "Connection":
        """Both ends show the key; neither sends anything that helps who does not have it."""
        try:
            own = secrets.token_bytes(NONCE_BYTES)
            self.send({"nonce": own.hex()})
            other = _hexadecimal(self.receive(_UNPROVEN_BYTES), "nonce")
            self.send({"proof": _proof(key, own_label, own, other).hex()})
            shown = _hexadecimal(self.receive(_UNPROVEN_BYTES), "proof")
            genuine = hmac.compare_digest(shown, _proof(key, peer_label, other, own))
        except PeerError:
            self.close()
            raise
        if not genuine:
            self.close()
            raise PeerError("the other end does not have the key of this attempt")
        return self

    def _exactly(self, count: int) -> bytes:
        target = bytearray(count)
        self.receive_into(memoryview(target))
        return bytes(target)


def _proof(key: bytes, role: bytes, own: bytes, other: bytes) -> bytes:
    return hmac.new(key, role + own + other, hashlib.sha256).digest()


def _hexadecimal(frame: Frame, name: str) -> bytes:
    value = frame.get(name)
    try:
        content = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        content = b""
    if len(content) != NONCE_BYTES:
        raise PeerError(f"a frame without {name}")
    return content
