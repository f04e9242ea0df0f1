"""Where audit lines go: syslog, journald or a file; a sink that takes none is an error."""

import json
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from brctl.library.durable_files import append_line, private_dir
from brctl.model.errors import UnavailableError
from brctl.view.redact import redact
from brctl.view.text import printable

SYSLOG = Path("/dev/log")
JOURNALD = Path("/run/systemd/journal/socket")
VALUE_LIMIT = 300
_NAME = "brctl"
_PRIORITY = 10 * 8 + 5
"""authpriv.notice: beside what sudo and sshd write."""
_SEND_S = 2.0

Row = Mapping[str, str]


def send(to: str, path: Path, row: Row) -> None:
    """Hand over one line.

    Args:
        to: `syslog`, `journald` or `file`.
        path: The socket or the file.
        row: Values by key; control characters and what looks like a secret are taken out.

    Raises:
        UnavailableError: It was not taken.
    """
    safe = {key: printable(redact(value), VALUE_LIMIT) for key, value in row.items() if value}
    try:
        if to == "file":
            private_dir(path.parent)
            append_line(path, json.dumps(safe, ensure_ascii=False))
        else:
            _send_datagram(path, _syslog(safe) if to == "syslog" else _journald(safe))
    except OSError as exc:
        raise UnavailableError(
            f"audit: {path} took no line: {exc.strerror or exc}",
            hint="mend it, or change `audit` in config.yaml",
        ) from exc


def _send_datagram(path: Path, raw: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.settimeout(_SEND_S)
        channel.connect(str(path))
        channel.sendall(raw)


def _text(row: Row) -> str:
    return " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in row.items())


def _syslog(row: Row) -> bytes:
    """As libc's syslog() writes it; the daemon adds time and host."""
    return f"<{_PRIORITY}>{_NAME}[{os.getpid()}]: {_text(row)}".encode()


def _journald(row: Row) -> bytes:
    """Its native protocol: a field a line, values with their length, so none can add a field."""
    fields = {"MESSAGE": _text(row), "PRIORITY": "5", "SYSLOG_FACILITY": "10"}
    fields |= {"SYSLOG_IDENTIFIER": _NAME, **{f"BRCTL_{k.upper()}": v for k, v in row.items()}}
    return b"".join(_field(name, value.encode()) for name, value in fields.items())


def _field(name: str, value: bytes) -> bytes:
    return name.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"
