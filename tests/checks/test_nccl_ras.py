"""The program that asks NCCL's RAS service, against a listener that follows its protocol."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from brctl.library.shipped import joined_program, node_program
from tests.fakes.ras_listener import RasListener, Release
from tests.fakes.ras_reports import HEALTHY, ONE_OF_TWO, STOPPED, mismatch, text_report
from tests.timeouts import TIMEOUT_S

RELEASES = {
    "2.24": Release("2.24.3", STOPPED),
    "2.26.5": Release("2.26.5", mismatch("2.26.5", 6650, "AllReduce")),
    "2.28.9": Release("2.28.9", text_report("2.28.9", HEALTHY), ONE_OF_TWO),
    "2.29.2": Release("2.29.2", text_report("2.29.2", HEALTHY), ONE_OF_TWO),
    "2.30.7": Release("2.30.7", text_report("2.30.7", HEALTHY), ONE_OF_TWO),
    "2.32.3": Release("2.32.3", text_report("2.32.3", HEALTHY), ONE_OF_TWO),
}
OF_OURS = RELEASES["2.30.7"]


def ask(port: int, form: str = "text", **changes: object) -> tuple[dict[str, object], bytes]:
    """What the program says, and the answer it brings."""
    request = {
        "pid": os.getpid(), "addresses": ["127.0.0.1"], "port": port,
        "format": form, "tries": 4, "try_s": 0.3, "timeout_s": 5, "answer_s": TIMEOUT_S,
        "limit_bytes": 1 << 20, "wait_s": 0, **changes,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-I", "-c", joined_program(node_program("_nccl_ras.py"))],
        input=json.dumps(request).encode(), capture_output=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    head, _, raw = done.stdout.partition(b"\n")
    return json.loads(head), raw


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_every_release_answers_in_text(release: Release) -> None:
    """In the order of the real client, and nothing is sent that changes a job."""
    with RasListener(release) as listener:
        told, raw = ask(listener.port, try_s=TIMEOUT_S)
    assert (told["outcome"], raw) == ("answered", release.text)
    assert listener.said == ["CLIENT PROTOCOL 2", "TIMEOUT 5", "STATUS"]


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_json_is_asked_for_and_an_old_release_says_that_it_has_none(release: Release) -> None:
    """The feature is tried; no number is compared."""
    with RasListener(release) as listener:
        told, raw = ask(listener.port, "json", try_s=TIMEOUT_S)
    if release.json is None:
        assert (told["outcome"], raw) == ("no-format", b"")
        assert listener.said[-1] == "SET FORMAT json", "an old release must not be asked for more"
    else:
        assert (told["outcome"], raw) == ("answered", release.json)


def test_nobody_listens_is_said_at_once() -> None:
    """A refused connection is no silent process: it is not tried again."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        told, _ = ask(bound.getsockname()[1])
    assert (told["outcome"], told["tries"]) == ("refused", 1)


def _silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def _closes(connection: socket.socket) -> None:
    connection.recv(1)


def _greets(connection: socket.socket, answer: bytes) -> None:
    """Behaves until the question, then answers as it likes and holds the connection."""
    for said in (b"SERVER PROTOCOL 2\n", b"OK\n"):
        connection.recv(4096)
        connection.sendall(said)
    connection.recv(4096)
    connection.sendall(answer)


def _in_the_middle(connection: socket.socket) -> None:
    _greets(connection, OF_OURS.text[:300])


def _never_ends(connection: socket.socket) -> None:
    _greets(connection, OF_OURS.text)
    _silent(connection)


def _gigabytes(connection: socket.socket) -> None:
    _greets(connection, b"")
    while True:
        connection.sendall(b"x" * 65536)


def _endless_line(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"SERVER PROTOCOL" + b"2" * 65536)


def _drips(connection: socket.socket) -> None:
    while connection.send(b"S"):
        _wait_for_nothing(connection)


def _wait_for_nothing(connection: socket.socket) -> None:
    connection.settimeout(0.05)
    try:
        connection.recv(4096)
    except TimeoutError:
        connection.settimeout(None)


SHORT_S = 0.3
"""For ends of which only a deadline can tell; every other one has all the time it needs."""


@pytest.mark.parametrize(
    ("behave", "outcome", "try_s", "answer_s"),
    [
        (_silent, "silent", SHORT_S, TIMEOUT_S),
        (_drips, "silent", SHORT_S, TIMEOUT_S),
        (_closes, "closed", TIMEOUT_S, TIMEOUT_S),
        (lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"), "not-ras", TIMEOUT_S, TIMEOUT_S),
        (lambda c: c.sendall(b"\x00\xff\xfe" * 2000), "not-ras", TIMEOUT_S, TIMEOUT_S),
        (_endless_line, "not-ras", TIMEOUT_S, TIMEOUT_S),
        (_never_ends, "late", TIMEOUT_S, SHORT_S),
        (_gigabytes, "over-limit", TIMEOUT_S, TIMEOUT_S),
        (_in_the_middle, "answered", TIMEOUT_S, TIMEOUT_S),
    ],
)
def test_hostile_ends_are_bounded_in_bytes_and_time(
    behave: Callable[[socket.socket], None], outcome: str, try_s: float, answer_s: float
) -> None:
    """Whoever is there: the program ends, with at most what it may bring."""
    with RasListener(OF_OURS, behave=behave) as listener:
        told, raw = ask(listener.port, tries=2, try_s=try_s, answer_s=answer_s)
    assert told["outcome"] == outcome
    assert len(raw) <= 1 << 20


@contextmanager
def listening_process(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own on a shared port; the kernel gives it some of the connections."""
    program = (
        "import socket,sys\n"
        "s=socket.socket();s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEPORT,1)\n"
        f"s.bind(('127.0.0.1',{port}));s.listen(64);print('up',flush=True);sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_stopped_process_on_the_port_is_passed_over() -> None:
    """It takes the connection and says nothing: another try reaches another process."""
    with RasListener(OF_OURS) as listener, listening_process(listener.port) as process:
        process.send_signal(signal.SIGSTOP)
        told, raw = ask(listener.port, tries=40, try_s=2.0, answer_s=TIMEOUT_S)
    assert (told["outcome"], raw) == ("answered", OF_OURS.text)
