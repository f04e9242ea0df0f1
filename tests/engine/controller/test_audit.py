"""Each action is a line in the site's audit log: who, from where, what and why; never a secret."""

import contextlib
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.controller import audit
from brctl.engine.controller.people import person
from brctl.journal.audit_sinks import send
from brctl.model.errors import UnavailableError
from tests.cli.test_play import CONFIG, INVENTORY, JOB
from tests.fakes.site_files import write_site
from tests.timeouts import TIMEOUT_S

SINKS = ("syslog", "journald")


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody logged in over SSH; what was said once in another test is said again."""
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.7 50022 192.0.2.1 22")
    monkeypatch.delenv("SUDO_USER", raising=False)
    audit._say_once.cache_clear()


class Collector:
    """What listens at /dev/log or journald's socket: a Unix datagram socket."""

    def __init__(self, place: Path) -> None:
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._channel.bind(str(place))
        self._channel.settimeout(0)

    def lines(self) -> list[str]:
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self._channel.recv(65536).decode(errors="surrogateescape"))
        return found

    def lines_until(self, action: str) -> list[str]:
        """Up to this action's: a run's process says it a moment after its journal has ended."""
        self._channel.settimeout(TIMEOUT_S)
        found = [""]
        while f'action="{action}"' not in found[-1]:
            found.append(self._channel.recv(65536).decode(errors="surrogateescape"))
        return found[1:]

    def close(self) -> None:
        self._channel.close()


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    found = Collector(tmp_path / "log")
    yield found
    found.close()


def brctl(folder: Path, audit_lines: str, *words: str) -> int:
    config = str(write_site(folder, CONFIG + audit_lines, INVENTORY, job=JOB))
    return run([words[0], "--config", config, "--no-input", *words[1:]])


def syslog(path: Path, failure: str = "warn") -> str:
    return f"audit: syslog\naudit_path: {path}\naudit_failure: {failure}\n"


def test_a_run_leaves_a_line_for_each_thing_it_did(tmp_path: Path, collector: Collector) -> None:
    """By the real process of a run: started, each step before and after, the end."""
    assert brctl(tmp_path, syslog(tmp_path / "log"), "cordon", "n1", "-m", "fan is loud") == 0
    lines = collector.lines_until("end")
    actions = [line.split('action="')[1].split('"')[0] for line in lines]
    assert actions[0] == "run"
    assert actions[1] == "run.started"
    assert actions[-1] == "end"
    assert actions.count("step.intent") == actions.count("step.result") >= 1
    for line in lines:
        assert line.startswith("<85>brctl[")
        assert f'person="{person()}"' in line
        assert 'from="192.0.2.7"' in line
        assert f'uid="{os.getuid()}"' in line
        assert 'context="' in line
    cordon = next(line for line in lines if 'uses="node.cordon"' in line)
    assert 'nodes="n1"' in cordon
    assert 'run="R-0001"' in cordon
    numbers = [int(line.split('line="')[1].split('"')[0]) for line in lines[1:]]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("failure", ["warn", "refuse"])
@pytest.mark.parametrize("words", ["cordon n1 -m fan", "run -w n1 -- touch RAN"])
def test_a_sink_that_takes_no_line_is_said_or_stops_the_action(
    words: str,
    failure: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As the site wants; it says so aloud unless told otherwise."""
    ran = tmp_path / "ran"
    typed = words.replace("RAN", str(ran)).split()
    code = brctl(tmp_path, syslog(tmp_path / "nobody", failure), *typed)
    refused = failure == "refuse"
    assert code == (69 if refused else 0)
    if "touch" in words:
        assert ran.exists() is not refused
    else:
        assert (tmp_path / "state" / "runs").exists() is not refused
    told = capsys.readouterr().err + caplog.text
    assert f"audit: {tmp_path / 'nobody'} took no line: No such file or directory" in told
    assert ("the action goes on" in told) is not refused


def test_a_command_on_nodes_is_told_without_its_words(tmp_path: Path, collector: Collector) -> None:
    """They may hold anything."""
    path = syslog(tmp_path / "log")
    assert brctl(tmp_path, path, "run", "-w", "n1", "--", "echo", "hunter2-is-my-password") == 0
    (line,) = collector.lines()
    assert 'action="brctl run"' in line
    assert 'nodes="n1"' in line
    assert "hunter2" not in line


def test_nothing_is_told_where_nothing_was_asked_for(tmp_path: Path, collector: Collector) -> None:
    assert brctl(tmp_path, "", "run", "-w", "n1", "--", "true") == 0
    assert collector.lines() == []


def test_a_refused_action_of_a_readonly_context_is_none(
    tmp_path: Path, collector: Collector
) -> None:
    path = syslog(tmp_path / "log")
    assert brctl(tmp_path, path, "run", "-w", "n1", "--readonly", "--", "true") == 5
    assert collector.lines() == []


def test_a_file_takes_lines_only_its_owner_reads(tmp_path: Path) -> None:
    """The usual one lies with the state."""
    assert brctl(tmp_path, "audit: file\n", "run", "-w", "n1", "--", "true") == 0
    path = tmp_path / "state" / "audit.ndjson"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (row,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert (row["action"], row["nodes"], row["from"]) == ("brctl run", "n1", "192.0.2.7")


HOSTILE = {
    "action": 'x" by="root', "why": "a\nPRIORITY=0\nBRCTL_BY=root\x1b[31m", "nodes": "n" * 5000,
    "note": "token=abcdef0123456789", "empty": "",
}  # fmt: skip


@pytest.mark.parametrize("to", SINKS)
def test_a_value_adds_no_field_no_line_and_no_secret(
    to: str, tmp_path: Path, collector: Collector
) -> None:
    """Whatever a person or a node made it hold."""
    send(to, tmp_path / "log", HOSTILE)
    (line,) = collector.lines()
    assert "abcdef0123456789" not in line
    assert "\x1b" not in line
    assert len(line) < 4000
    if to == "syslog":
        assert "\n" not in line
        assert ' by="root' not in line
    else:
        fields = journald_fields(line.encode(errors="surrogateescape"))
        assert fields["BRCTL_WHY"].startswith("a\\nPRIORITY=0")
        assert (fields["PRIORITY"], fields["SYSLOG_IDENTIFIER"]) == ("5", "brctl")
        assert "BRCTL_BY" not in fields


def journald_fields(raw: bytes) -> dict[str, str]:
    """As journald reads its native protocol."""
    fields = {}
    while raw:
        name, _, raw = raw.partition(b"\n")
        size = int.from_bytes(raw[:8], "little")
        fields[name.decode()] = raw[8 : 8 + size].decode()
        assert raw[8 + size : 9 + size] == b"\n"
        raw = raw[9 + size :]
    return fields


def test_a_sink_that_does_not_read_holds_up_nobody_for_long(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that hangs is one that takes no line."""
    monkeypatch.setattr("brctl.journal.audit_sinks._SEND_S", 0.05)
    with pytest.raises(UnavailableError, match="took no line"):
        fill(tmp_path / "log")


def fill(place: Path) -> None:
    """More lines than the socket's buffer holds."""
    for _ in range(10_000):
        send("syslog", place, {"action": "x"})
