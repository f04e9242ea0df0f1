"""The webhook's server bears clients that say nothing, talk slowly, or are a browser led astray."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest

from brctl.engine.controller import bounded_server
from brctl.engine.controller.bounded_server import CLIENTS
from brctl.engine.incidents.alert_server import AlertServer
from tests.timeouts import TIMEOUT_S


@contextlib.contextmanager
def serving(token: str = "") -> Iterator[int]:
    """A server that takes everything; its port."""
    server = AlertServer(("127.0.0.1", 0), lambda raw: {"bytes": len(raw)}, token, print)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join(TIMEOUT_S)
        server.server_close()


def no_name_server(_name: str = "") -> str:
    """What a dead name server comes to after a minute."""
    raise TimeoutError("nobody answers")


def test_a_server_listens_without_asking_a_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", no_name_server)
    with serving() as port:
        assert port > 0


def post(port: int, headers: Mapping[str, str], body: bytes = b"{}") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        connection.request("POST", "/", body, dict(headers))
        response = connection.getresponse()
        return response.status, json.loads(response.read()).get("error", "")


BEGINNINGS = {
    "silent": b"",
    "half a line": b"POST / HT",
    "headers without end": b"POST / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n",
    "a body that never comes": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
}


@pytest.mark.parametrize("beginning", sorted(BEGINNINGS))
def test_connections_that_never_end_keep_no_alert_out(
    beginning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many times more of them than places: whoever has waited longest gives up its place."""
    monkeypatch.setattr(bounded_server, "CLIENT_TIMEOUT_S", 10 * TIMEOUT_S)
    with contextlib.ExitStack() as idle, serving() as port:
        for _ in range(4 * CLIENTS):
            client = idle.enter_context(socket.create_connection(("127.0.0.1", port)))
            with contextlib.suppress(OSError):
                client.sendall(BEGINNINGS[beginning])
        assert post(port, {}) == (200, "")
        assert threading.active_count() < 3 * CLIENTS + 10


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Origin": "https://attacker.example"}, "a web page"),
        ({"Origin": "null"}, "a web page"),
        ({"Host": "attacker.example:9095"}, "Host must be"),
        ({"Host": "127.0.0.1.attacker.example"}, "Host must be"),
        ({"Host": ""}, "Host must be"),
    ],
)
def test_a_browser_cannot_be_led_to_post_alerts(headers: dict[str, str], why: str) -> None:
    """By a page that posts here, or by a name that its DNS moves to 127.0.0.1."""
    with serving() as port:
        status, error = post(port, headers)
        assert (status, why in error) == (403, True)


@pytest.mark.parametrize("host", ["localhost:9095", "LOCALHOST", "127.0.0.1:1", "[::1]:9095"])
def test_every_name_of_this_machine_is_a_host(host: str) -> None:
    with serving() as port:
        assert post(port, {"Host": host})[0] == 200


def test_whoever_shows_the_token_may_come_by_any_name() -> None:
    """Behind a proxy or by the machine's own name; a page is refused all the same."""
    shown = {"Authorization": "Bearer t", "Host": "alerts.example"}
    with serving("t") as port:
        assert post(port, shown)[0] == 200
        assert post(port, shown | {"Origin": "https://alerts.example"})[0] == 403
