"""Tell the service manager how we are: a datagram to the socket it names, and no library."""

import os
import socket
from collections.abc import Mapping


def tell_service_manager(said: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> bool:
    """Send `READY=1`, `WATCHDOG=1`, `STATUS=...`; False where no service manager listens."""
    where = environ.get("NOTIFY_SOCKET", "")
    if not where:
        return False
    # A name that begins with @ has no file.
    address = "\0" + where[1:] if where.startswith("@") else where
    text = "\n".join(f"{key}={value}" for key, value in said.items())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        try:
            channel.sendto(text.encode(), address)
        except OSError:
            return False
    return True
