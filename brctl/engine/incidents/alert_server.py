"""A small HTTP server for Alertmanager's webhook: bounded in time, size and number of clients.

It is for programs. A browser that a web page turned against it names itself by `Origin`, or by a
`Host` that is no address of ours, and is refused before its body is read.
"""

import hmac
import ipaddress
import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler

from brctl.engine.controller.bounded_server import CLIENT_TIMEOUT_S, BoundedServer
from brctl.evidence.alert_webhook import LIMIT_BYTES, BadAlertError

IngestBody = Callable[[bytes], Mapping[str, object]]
"""Takes a body; BadAlertError means that the sender is wrong, anything else that we are."""


class AlertServer(BoundedServer):
    """Serves POSTs to `ingest` until `shutdown`.

    Args:
        address: Host and port to listen on.
        ingest: What to do with a body.
        token: Bearer token that senders must show; "" asks for none.
        say: Prints a warning.
    """

    def __init__(
        self, address: tuple[str, int], ingest: IngestBody, token: str, say: Callable[[str], None]
    ) -> None:
        self.ingest, self.token, self.say = ingest, token, say
        super().__init__(address, _Handler)


def _is_local(host: str) -> bool:
    """Whether a Host header names this machine, which a name that DNS points here does not."""
    name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


class _Handler(BaseHTTPRequestHandler):
    server: AlertServer
    timeout = CLIENT_TIMEOUT_S
    server_version, sys_version = "brctl", ""

    def do_GET(self) -> None:
        """Whether we are there."""
        self._answer(200, {"status": "ok"})

    def do_POST(self) -> None:
        """One body of Alertmanager."""
        status, answer = self._ingest_body()
        self._answer(status, answer)

    def _ingest_body(self) -> tuple[int, Mapping[str, object]]:
        if self.headers.get("Origin") is not None:
            return 403, {"error": "a web page may not post here"}
        if not self.server.token and not _is_local(self.headers.get("Host") or ""):
            return 403, {"error": "without a token, Host must be an address of this machine"}
        wanted = f"Bearer {self.server.token}".encode()
        given = (self.headers.get("Authorization") or "").encode()
        if self.server.token and not hmac.compare_digest(wanted, given):
            return 401, {"error": "the bearer token is missing or wrong"}
        length = self.headers.get("Content-Length") or ""
        if not length.isdecimal():
            return 411, {"error": "Content-Length is missing"}
        if len(length) > 9 or int(length) > LIMIT_BYTES:
            return 413, {"error": f"more than {LIMIT_BYTES} bytes"}
        body = self.rfile.read(int(length))
        self.server.has_read(self.connection)
        try:
            return 200, self.server.ingest(body)
        except BadAlertError as exc:
            return 400, {"error": str(exc)}
        except Exception as exc:  # noqa: BLE001 - the sender tries again; the server must live on
            self.server.say(f"warning: an alert could not be taken: {type(exc).__name__}: {exc}")
            return 500, {"error": "could not be kept; try again"}

    def _answer(self, status: int, answer: Mapping[str, object]) -> None:
        raw = json.dumps(answer).encode()
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not worth a line each."""
