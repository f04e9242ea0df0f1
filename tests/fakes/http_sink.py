"""A real HTTP server on loopback that keeps what it is sent and answers as told, badly too."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = "hang"
DRIP = "drip"
CLOSE = "close"


@dataclass
class Reply:
    """One answer: a status with a body, or a way not to answer."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    manner: str = ""


@dataclass
class Request:
    """What was sent."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpSink:
    """The server; `replies` are used up one by one, then `always`."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.always = Reply()
        self.over = threading.Event()
        sink = self

        class SinkHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                body = self.rfile.read(length)
                sink.requests.append(Request(self.path, dict(self.headers), body))
                sink.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), SinkHandler)
        self.server.daemon_threads = True
        scheme = "http"
        if context is not None:
            scheme = "https"
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        reply = self.replies.pop(0) if self.replies else self.always
        if reply.manner == HANG:
            self.over.wait()
            return
        if reply.manner == CLOSE:
            handler.connection.close()
            return
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        if reply.manner == DRIP:
            while not self.over.wait(0.05):
                handler.wfile.write(b"x")
                handler.wfile.flush()
            return
        handler.wfile.write(reply.body)

    @property
    def bodies(self) -> list[Any]:
        return [request.json for request in self.requests]


@contextmanager
def http_sink(context: ssl.SSLContext | None = None) -> Iterator[HttpSink]:
    """The server, running for the block."""
    sink = HttpSink(context)
    sink.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that leave are expected
    thread = threading.Thread(target=sink.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        sink.over.set()
        sink.server.shutdown()
        sink.server.server_close()
        thread.join(5)
