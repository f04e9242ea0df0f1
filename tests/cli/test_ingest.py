"""`brctl ingest alertmanager` and `brctl incident` as Alertmanager and a person use them."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brctl.cli.commands import incident as incident_module
from brctl.cli.commands import ingest as ingest_module
from brctl.engine.incidents.verdict_store import load_all
from brctl.model.errors import ConfigError, UsageError
from tests.cli.test_notify import CONFIG, OWN, XID
from tests.cli.test_run import call
from tests.evidence.test_alert_webhook import alert, body
from tests.timeouts import TIMEOUT_S

ENDED: dict[str, Any] = {"status": "resolved", "endsAt": "2026-07-05T03:06:58Z"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One node whose kernel tells of a lost GPU."""
    (tmp_path / "own.yaml").write_text(OWN % (tmp_path / "kmsg"))
    (tmp_path / "kmsg").write_text(XID % int(time.monotonic() * 1e6))
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def named(**more: Any) -> dict[str, Any]:
    return alert(labels={"alertname": "GpuXid", "instance": "n1:9400"}, **more)


def ingest(config: Path, raw: bytes, *flags: str) -> dict[str, Any]:
    path = config.parent / "body.json"
    path.write_bytes(raw)
    code, text = call(ingest_module, config, "alertmanager", str(path), "--json", *flags)
    assert code == 0
    found: dict[str, Any] = json.loads(text)
    return found


def incidents(config: Path) -> list[dict[str, Any]]:
    _, text = call(incident_module, config, "list", "--json")
    found: list[dict[str, Any]] = json.loads(text)["incidents"]
    return found


def test_an_alert_opens_one_incident_and_its_end_closes_it(config: Path) -> None:
    """Alertmanager repeats what fires; the same alert that begins anew is a new incident."""
    first = ingest(config, body(named()))
    assert [row["folded"] for row in first["opened"]] == ["n1"]
    again = ingest(config, body(named()))
    assert (again["opened"], len(again["repeated"])) == ([], 1)
    assert [row["state"] for row in incidents(config)] == ["open"]
    ended = ingest(config, body(named(**ENDED)))
    assert len(ended["closed"]) == 1
    assert ingest(config, body(named(**ENDED)))["ignored"] == 1
    anew = ingest(config, body(named(startsAt="2026-07-06T00:00:00Z")))
    assert len(anew["opened"]) == 1
    assert sorted(row["state"] for row in incidents(config)) == ["closed", "open"]


def test_an_alert_may_start_a_look_and_never_a_run(config: Path) -> None:
    """The verdict is kept with the incident; nothing was changed and no run was made."""
    opened = ingest(config, body(named()), "--dx")["opened"]
    (stored,) = [s for s in load_all(config.parent / "state") if s.state.value == "open"]
    _, text = call(incident_module, config, "show", opened[0]["id"])
    assert stored.verdict.id in text
    assert not (config.parent / "state" / "runs").exists()


def test_an_alert_about_a_stranger_opens_an_incident_without_a_node(config: Path) -> None:
    unknown = alert(labels={"alertname": "Disk", "instance": "../../etc/passwd"})
    (row,) = ingest(config, body(unknown), "--dx")["opened"]
    assert (row["folded"], row["alert"]) == ("", "Disk")


def test_what_an_alert_says_is_shown_harmless(config: Path) -> None:
    """Control characters, markup and secrets in an alert reach neither terminal nor document."""
    nasty = {"summary": "\x1b[31m token=abcdef12345 | <b>"}
    name = ingest(config, body(named(annotations=nasty)))["opened"][0]["id"]
    for verb in (("show", name), ("export", name), ("list",), ("export", name, "--format", "json")):
        _, text = call(incident_module, config, *verb)
        assert "\x1b" not in text
        assert "abcdef12345" not in text


def test_a_note_is_on_the_time_line(config: Path) -> None:
    name = ingest(config, body(named()))["opened"][0]["id"]
    call(incident_module, config, "note", name, "-m", "riser was loose")
    _, text = call(incident_module, config, "export", name, "--format", "md")
    assert "riser was loose" in text
    assert text.startswith("# Incident I-")


def test_mistakes_are_errors_with_a_way_out(config: Path) -> None:
    with pytest.raises(UsageError, match="either a file"):
        call(ingest_module, config, "alertmanager")
    with pytest.raises(UsageError, match="senders must show a token"):
        call(ingest_module, config, "alertmanager", "--listen", "0.0.0.0:9095")
    with pytest.raises(UsageError, match="write HOST:PORT"):
        call(ingest_module, config, "alertmanager", "--listen", "9095")
    with pytest.raises(UsageError, match=r"a\.\.b has no address here"):
        call(ingest_module, config, "alertmanager", "--listen", "a..b:9095")
    (config.parent / "bad").write_text("{}")
    with pytest.raises(ConfigError, match="version 4"):
        call(ingest_module, config, "alertmanager", str(config.parent / "bad"))
    with pytest.raises(UsageError, match="no incident `I-X`"):
        call(incident_module, config, "show", "I-X")


@contextmanager
def listening(config: Path, *flags: str) -> Iterator[int]:
    """The real program on a port of its own; its port."""
    command = [sys.executable, "-m", "brctl", "--config", str(config), "ingest", "alertmanager"]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", *flags], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert "listening on" in line
        yield int(line.split(";")[0].rpartition(":")[2])
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 143
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def post(port: int, raw: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    connection.request("POST", "/", raw, headers)
    response = connection.getresponse()
    answer: dict[str, Any] = json.loads(response.read())
    connection.close()
    return response.status, answer


def test_the_server_takes_alerts_and_survives_everybody_else(config: Path) -> None:
    """Strangers, garbage, a body that never comes: the next alert is taken all the same."""
    token = config.parent / "token"
    token.write_text("t0ken\n")
    token.chmod(0o600)
    good = {"Authorization": "Bearer t0ken"}
    with listening(config, "--token-file", str(token)) as port:
        assert post(port, body(named()))[0] == 401
        assert post(port, body(named()), Authorization="Bearer other")[0] == 401
        assert post(port, b"garbage", **good)[0] == 400
        assert post(port, b"[" * 50_000, **good)[0] == 400
        with socket.create_connection(("127.0.0.1", port)) as silent:
            silent.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n")
            with socket.create_connection(("127.0.0.1", port)) as huge:
                huge.sendall(b"POST / HTTP/1.1\r\nAuthorization: Bearer t0ken\r\n")
                huge.sendall(b"Content-Length: 999999999\r\n\r\n")
                assert b" 413 " in huge.recv(200)
            status, answer = post(port, body(named()), **good)
        assert (status, len(answer["opened"])) == (200, 1)
        assert post(port, body(named(**ENDED)), **good)[1]["closed"] != []
    assert [row["state"] for row in incidents(config)] == ["closed"]
