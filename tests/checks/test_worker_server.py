"""The program that asks torch's worker servers, against a real one in each state of a rank."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brctl.engine.live_queries.workers import read_workers, recorded_in
from brctl.evidence.flight.dump import parse_dump
from brctl.evidence.job.worker_servers import WorkerAnswer, assess_workers, with_tracebacks
from brctl.evidence.stacks.snapshot import RankStack
from brctl.library.shipped import joined_program, node_program
from brctl.model.jobs.job import example_job
from tests.timeouts import TIMEOUT_S

RANK = """
import ctypes, sys, threading
import torch, torch.distributed as dist
from torch._C._distributed_c10d import _WorkerServer
server = _WorkerServer(sys.argv[1])
store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
dist.all_reduce(torch.ones(2))
print("up", flush=True)
def waits_here():
    sys.stdin.readline()
waits_here()
print("held", flush=True)
ctypes.PyDLL(None).sleep(1000)
"""
"""Runs Python until it reads a line, then sleeps in native code that keeps the interpreter."""


SHORT_S = 0.5
"""For what never answers; everything else has all the time it needs."""


def ask(
    path: str, pid: int, ping_s: float = TIMEOUT_S, traceback_s: float = TIMEOUT_S
) -> list[WorkerAnswer]:
    """What the program brings of one rank."""
    return run_program({"pid": pid, "socket": path}, ping_s=ping_s, traceback_s=traceback_s)


def run_program(of_rank: dict[str, object], **limits: object) -> list[WorkerAnswer]:
    request = {
        "ranks": [{"rank": 0, "socket": "", "pipe": "", "dump": "", **of_rank}],
        "ping_s": TIMEOUT_S, "answer_s": TIMEOUT_S, "traceback_s": TIMEOUT_S,
        "limit_bytes": 1 << 20, **limits,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-I", "-c", joined_program(node_program("_worker_server.py"))],
        input=json.dumps(request).encode(), capture_output=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    return list(read_workers(done.stdout, [0]))


@pytest.fixture(scope="module")
def rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """One rank with a real worker server and a real recorder."""
    pytest.importorskip("torch")
    path = str(tmp_path_factory.mktemp("worker") / "server.sock")
    pipe = subprocess.PIPE
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "2000"}
    process = subprocess.Popen(
        [sys.executable, "-c", RANK, path], stdin=pipe, stdout=pipe, env=environment
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process, path
    finally:
        process.kill()
        process.communicate()


@pytest.mark.torch
def test_the_answers_of_a_rank_tell_its_state(rank: tuple[subprocess.Popen[bytes], str]) -> None:
    """Python runs, a native call holds the interpreter, stopped, gone: four patterns, all real."""
    process, path = rank
    assert process.stdin is not None
    assert process.stdout is not None
    running = {a.handler: a for a in ask(path, process.pid)}
    assert {h: a.outcome for h, a in running.items()} == {
        "ping": "ok", "fr_trace_json": "ok", "dump_traceback": "ok",
    }  # fmt: skip
    (stack,) = with_tracebacks([RankStack(0, ())], [*running.values()])
    assert stack.stack[0] == "<string>:waits_here"
    dump = parse_dump(0, recorded_in([*running.values()])[0])
    assert any("all_reduce" in op.name for op in dump.operations), "what it really recorded"
    assert assess_workers([*running.values()], example_job()) == ()

    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"held\n"
    held = ask(path, process.pid, traceback_s=SHORT_S)
    assert {a.handler: a.outcome for a in held} == {
        "ping": "ok", "fr_trace_json": "ok", "dump_traceback": "late",
    }  # fmt: skip
    assert [e.kind for e in assess_workers(held, example_job())] == ["job.worker.held"]

    process.send_signal(signal.SIGSTOP)
    stopped = ask(path, process.pid, ping_s=SHORT_S)
    assert {a.handler: a.outcome for a in stopped} == {"ping": "late"}
    assert [e.kind for e in assess_workers(stopped, example_job())] == ["job.worker.silent"]

    process.kill()
    process.wait()
    gone = ask(path, os.getpid())
    assert {a.handler: a.outcome for a in gone} == {"ping": "refused"}
    assert assess_workers(gone, example_job()) == ()


Behave = Callable[[socket.socket], None]


@contextmanager
def server(path: Path, behave: Behave) -> Iterator[None]:
    """A socket that somebody listens on, and does as it likes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(8)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    behave(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


def _says(answer: bytes) -> Behave:
    def behave(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(answer)

    return behave


def _forever(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65536)


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (_says(b"\x00\xff" * 500), "not-http"),
        (_says(b""), "not-http"),
        (_says(b"HTTP/1.1 500 Oops\r\n\r\nno"), "status 500"),
        (_says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), "broken-off"),
        (_forever, "over-limit"),
    ],
)
def test_what_is_no_worker_server_is_said_and_asked_nothing_more(
    behave: Behave, outcome: str, tmp_path: Path
) -> None:
    """The program ends whatever is at the other end."""
    path = tmp_path / "s"
    with server(path, behave):
        (answer,) = ask(str(path), os.getpid())
    assert (answer.handler, answer.outcome) == ("ping", outcome)


def test_handlers_are_asked_only_where_they_are_offered(tmp_path: Path) -> None:
    """A server that offers nothing is asked for nothing but `ping`."""
    path = tmp_path / "s"
    with server(path, _says(b"HTTP/1.1 200 OK\r\n\r\n[]")):
        assert [a.handler for a in ask(str(path), os.getpid())] == ["ping"]


def test_a_file_of_another_kind_or_none_is_not_asked(tmp_path: Path) -> None:
    """A path that a rank was told may be anything by now."""
    (tmp_path / "plain").write_text("x")
    for name, outcome in (("plain", "another kind of file"), ("none", "gone")):
        (answer,) = ask(str(tmp_path / name), os.getpid())
        assert answer.outcome == outcome


def test_a_pipe_asks_the_recorder_for_a_new_dump(tmp_path: Path) -> None:
    """One byte goes into the pipe; the dump that comes is waited for."""
    os.mkfifo(tmp_path / "ask-0.pipe")
    reader = os.open(tmp_path / "ask-0.pipe", os.O_RDONLY | os.O_NONBLOCK)
    write = threading.Thread(target=_dump_when_asked, args=(reader, tmp_path / "trace-0"))
    write.start()
    stems = {"pipe": str(tmp_path / "ask-"), "dump": str(tmp_path / "trace-")}
    (answer,) = run_program({"pid": os.getpid(), **stems})
    write.join()
    os.close(reader)
    assert (answer.handler, answer.outcome) == ("pipe", "ok")
    (answer,) = run_program({"pid": os.getpid(), **stems})
    assert answer.outcome == "nobody reads the pipe"


def _dump_when_asked(reader: int, path: Path) -> None:
    os.set_blocking(reader, True)
    while not os.read(reader, 1):
        pass
    path.write_bytes(b"dump")


def test_answers_are_taken_of_the_nodes_own_ranks_and_once(tmp_path: Path) -> None:
    """A node that could answer for another one's rank would choose who is found to hang."""
    body = base64.b64encode(b"x").decode()
    rows = [
        {"rank": 0, "handler": "ping", "outcome": "ok", "body": body},
        {"rank": 0, "handler": "ping", "outcome": "late", "body": body},
        {"rank": 5, "handler": "ping", "outcome": "ok", "body": body},
        {"rank": [], "handler": "ping"},
        {"rank": False, "handler": "ping"},
        {"rank": 0, "handler": "rm"},
        {"rank": 0, "handler": "dump_traceback", "outcome": "ok", "body": "%%%"},
    ]
    lines = b"\xff\n[]\n" + b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert list(read_workers(lines, [0])) == [
        WorkerAnswer(0, "ping", "ok", b"x"),
        WorkerAnswer(0, "dump_traceback", "ok", b""),
    ]
