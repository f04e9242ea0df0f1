"""A RAS service of NCCL by its documented protocol, in each release that speaks it differently.

Derived from the server's state machine in NCCL's `src/ras/client_support.cc` (2.24 to 2.32) and its
user guide; no transcript of a running job. The real client, compiled from 2.30.7, talks to it.
"""

import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

BUFFER = 1024
"""A line that does not fit ends the connection, as in NCCL."""


@dataclass(frozen=True)
class Release:
    """What one release understands and answers.

    Attributes:
        json: Its JSON form; None before 2.28.7, where `SET FORMAT` is unknown.
    """

    version: str
    text: bytes
    json: bytes | None = None


class RasListener:
    """Listens on loopback; `said` keeps every line it was sent.

    Args:
        release: Who it is.
        shares: Port of another listener, which both then listen on.
        behave: Takes over the connection instead: hostile ones.
    """

    def __init__(
        self,
        release: Release,
        *,
        shares: int = 0,
        host: str = "127.0.0.1",
        behave: Callable[[socket.socket], None] | None = None,
    ) -> None:
        self.release = release
        self.said: list[str] = []
        self._behave = behave or self.serve
        self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._listener.bind((host, shares))
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self._behave(connection)
                except OSError:
                    continue  # the other end had enough

    def serve(self, connection: socket.socket) -> None:
        """The server's own behaviour: commands in any case, then one report and the end."""
        form, pending = "text", b""
        while True:
            while b"\n" not in pending:
                piece = connection.recv(BUFFER - len(pending)) if len(pending) < BUFFER else b""
                if not piece:
                    return
                pending += piece
            line, pending = pending.split(b"\n", 1)
            words = line.decode("utf-8", "replace").removesuffix("\r")
            self.said.append(words)
            command = words.lower()
            if command in ("status", "verbose status"):
                connection.sendall(self.report(form))
                return
            answer, form = self.answer(words, command, form)
            connection.sendall(answer)

    def report(self, form: str) -> bytes:
        return (self.release.json or b"") if form == "json" else self.release.text

    def answer(self, words: str, command: str, form: str) -> tuple[bytes, str]:
        if command.startswith("client protocol "):
            return b"SERVER PROTOCOL 2\n", form
        if command.startswith("timeout "):
            value = words[8:]
            fine = re.fullmatch(r"\d+(\.\d+)?", value)
            return (b"OK\n" if fine else f"ERROR: Invalid timeout value {value}\n".encode()), form
        if command.startswith("set format ") and self.release.json is not None:
            wanted = command[11:]
            if wanted in ("text", "json"):
                return b"OK\n", wanted
            return f"ERROR: Invalid format {words[11:]}\n".encode(), form
        return f"ERROR: Unknown command {words}\n".encode(), form
