"""What brctl says to the processes that fan out for it: length, then one msgpack value."""

import asyncio
import os
import struct
from pathlib import Path

import msgspec

from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node

MESSAGE_LIMIT_BYTES = 256 << 20
_LENGTH = struct.Struct("!I")


class BrokerRequest(msgspec.Struct):
    """Run a command on a node; `jumps` are inventory nodes it is reached through.

    `ssh` stays packed: it is the same for all nodes and is read once.
    """

    number: int
    ssh: msgspec.Raw
    node: Node
    jumps: list[Node]
    command: Command


class BrokerReply(msgspec.Struct):
    """The answer to the request of this number, or why our own settings allow none."""

    number: int
    answer: CommandResult | None = None
    error: str = ""
    hint: str = ""


def socket_path() -> Path:
    """The broker's socket: one per user, in a folder only that user can enter."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/brctl-{os.getuid()}"  # noqa: S108
    return Path(runtime) / "brctl" / "broker.sock"


def _encode_path(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def _decode_path(kind: type, value: object) -> object:
    if kind is Path:
        return Path(str(value))
    raise NotImplementedError(kind)


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_path)
_settings = msgspec.msgpack.Decoder(SshSettings, dec_hook=_decode_path)
_requests = msgspec.msgpack.Decoder(BrokerRequest)
_replies = msgspec.msgpack.Decoder(BrokerReply)


def pack_settings(ssh: SshSettings) -> msgspec.Raw:
    """Settings as every request carries them."""
    return msgspec.Raw(_encoder.encode(ssh))


def unpack_settings(packed: bytes) -> SshSettings:
    """The settings of a request; ValueError when they are none."""
    return _settings.decode(packed)


def send(writer: asyncio.StreamWriter, message: BrokerRequest | BrokerReply) -> None:
    """Queue one message."""
    data = _encoder.encode(message)
    writer.write(_LENGTH.pack(len(data)) + data)


async def read_request(reader: asyncio.StreamReader) -> BrokerRequest:
    """The next request; IncompleteReadError or ValueError end the conversation."""
    return _requests.decode(await _read(reader))


async def read_reply(reader: asyncio.StreamReader) -> BrokerReply:
    """The next reply; IncompleteReadError or ValueError end the conversation."""
    return _replies.decode(await _read(reader))


async def _read(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MESSAGE_LIMIT_BYTES:
        raise ValueError(f"a message of {length} bytes")
    return await reader.readexactly(length)
