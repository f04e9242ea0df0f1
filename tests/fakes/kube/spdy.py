"""The server's end of `kubectl exec`: SPDY/3.1 with the streams of v4.channel.k8s.io.

Every kubectl speaks it; those from 1.31 on try a WebSocket first and fall back, as they do with a
real API server before 1.29. From draft-mbelshe-httpbis-spdy-00 (frames, dictionary) and
k8s.io/apimachinery/pkg/util/remotecommand (streams).
"""

import json
import os
import queue
import select
import signal
import struct
import subprocess
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from io import BufferedIOBase
from typing import IO

_WORDS = """\
options head post put delete trace accept accept-charset accept-encoding accept-language
accept-ranges age allow authorization cache-control connection content-base content-encoding
content-language content-length content-location content-md5 content-range content-type date etag
expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since
last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer
retry-after server te trailer transfer-encoding upgrade user-agent vary via warning
www-authenticate method get status
"""
_TEXT = (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    b"203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    b"401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    b"503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00"
    b" Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    b"application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,"
    b"deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_MORE = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
DICTIONARY = (
    b"".join(struct.pack(">I", len(w)) + w.encode() for w in (*_WORDS.split(), *_MORE)) + _TEXT
)

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
_VERSION = 0x8003
_FIN = 1
_CHUNK = 1 << 15
_LOOK_S = 0.2
"""How often a process that reads no input lets us look for its client."""


class ExecSession:
    """One upgraded connection and the process behind it."""

    def __init__(self, incoming: BufferedIOBase, send: Callable[[bytes], None]) -> None:
        self._incoming = incoming
        self._send_bytes = send
        self._sending = threading.Lock()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._streams: dict[str, int] = {}
        # Bounded: as with a kubelet, a client waits for a process that reads slowly.
        self._input: queue.Queue[bytes | None] = queue.Queue(4)

    def serve(self, wanted: set[str], start: Callable[[], "subprocess.Popen[bytes]"]) -> None:
        """Open the streams, run the process, tell its status; returns when the client has gone."""
        with suppress(OSError, EOFError):
            while not wanted <= self._streams.keys():
                self._read_frame()
            process = start()
            threads = [
                threading.Thread(target=target, args=(process,), daemon=True)
                for target in (self._feed, self._answer)
            ]
            for thread in threads:
                thread.start()
            with suppress(OSError, EOFError):
                while True:
                    self._read_frame()
            # A container runtime only closes the pipes; a test leaves nothing behind.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            self._input.put(None)
            for thread in threads:
                thread.join()

    def _read_frame(self) -> None:
        first, second = struct.unpack(">II", self._read(8))
        flags, body = second >> 24, self._read(second & 0xFFFFFF)
        if not first >> 31:
            if first == self._streams.get("stdin"):
                self._pass_on(body or None)
                if flags & _FIN and body:
                    self._pass_on(None)
            return
        kind = first & 0xFFFF
        if kind == SYN_STREAM:
            stream = struct.unpack(">I", body[:4])[0] & 0x7FFFFFFF
            self._streams[self._stream_type(body[10:])] = stream
            empty = self._deflate.compress(struct.pack(">I", 0))
            block = empty + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._send(SYN_REPLY, struct.pack(">I", stream) + block)
        elif kind == PING:
            self._send(PING, body)
        elif kind == GOAWAY:
            raise EOFError

    def _pass_on(self, data: bytes | None) -> None:
        """Hand input to the process when it has room, for as long as the client is there."""
        while True:
            with suppress(queue.Full):
                self._input.put(data, timeout=_LOOK_S)
                return
            if self._has_client_gone():
                raise EOFError

    def _has_client_gone(self) -> bool:
        """Whether it has closed, though what it sent before is still unread."""
        look = select.poll()
        look.register(self._incoming, select.POLLRDHUP)
        return bool(look.poll(0))

    def _stream_type(self, block: bytes) -> str:
        raw = self._inflate.decompress(block)
        texts, at = [], 4
        while at < len(raw):
            size = struct.unpack(">I", raw[at : at + 4])[0]
            texts.append(raw[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return dict(zip(texts[::2], texts[1::2], strict=True))["streamtype"]

    def _read(self, size: int) -> bytes:
        found = self._incoming.read(size)
        if len(found) < size:
            raise EOFError
        return found

    def _send(self, kind: int, body: bytes) -> None:
        with self._sending:
            self._send_bytes(struct.pack(">HHI", _VERSION, kind, len(body)) + body)

    def _data(self, name: str, body: bytes, flags: int = 0) -> None:
        with self._sending:
            head = struct.pack(">II", self._streams[name], flags << 24 | len(body))
            self._send_bytes(head + body)

    def _feed(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin
        data: bytes | None = b""
        with suppress(OSError):
            while data := self._input.get():
                process.stdin.write(data)
                process.stdin.flush()
        with suppress(OSError):
            process.stdin.close()
        while data:  # it reads no more of what still comes
            data = self._input.get()

    def _answer(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout
        assert process.stderr
        pumps = [
            threading.Thread(target=self._pump, args=row, daemon=True)
            for row in (("stdout", process.stdout), ("stderr", process.stderr))
        ]
        for pump in pumps:
            pump.start()
        for pump in pumps:
            pump.join()
        code = process.wait()
        with suppress(OSError):
            self._data("error", json.dumps(_status(128 - code if code < 0 else code)).encode())
            for name in ("stdout", "stderr", "error"):
                self._data(name, b"", _FIN)

    def _pump(self, name: str, source: IO[bytes]) -> None:
        with source, suppress(OSError):
            while data := os.read(source.fileno(), _CHUNK):
                self._data(name, data)


def _status(code: int) -> object:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: {code}",
        "details": {"causes": causes},
    }
