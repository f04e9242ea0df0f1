"""RUNS ON A LAB'S NODE. Starts ranks by forking after the import of torch (decision 0438).

That import is most of what a cold rank costs, and a lab starts its job anew for each scenario. In
the inventory this stands in the place of the nodes' Python. The program that starts ranks is run by
one server on each node, which imported what a rank imports; where that program would execute the
rank's command, its process becomes the rank, under the command line and environment that a cold one
has. All else goes to the real interpreter.
"""

import ctypes
import gc
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

STARTS = b'\nrun(\'{"do": "start",'
"""In the program of `brctl/backends/ranks/commands.py`, as it is sent to start ranks."""

SERVE = "serve-ranks"
"""In the command line of the server, and of the supervisors of the ranks it forked."""

SPARE = "-" * (1 << 14)
"""Room for a rank's command line and environment in the place of the server's."""

MODULES = ("torch.distributed", "torch.utils.data", "brctl.training.trainer")
READY = b"ready"
_STATUS = struct.Struct("i")
_BYTES = 1 << 20
_ADDRESSES_AT = 45
"""Of the fields of /proc/PID/stat after the name: where the command line begins and ends, and then
where the environment does."""


def main() -> None:
    """Be `python -I -`; ranks are forked where the node has a server for that."""
    program = sys.stdin.buffer.read()
    server = socket.socket(socket.AF_UNIX)
    if STARTS in program and server.connect_ex(address()) == 0:
        socket.send_fds(server, [program], [1, 2])
        server.shutdown(socket.SHUT_WR)
        sys.exit(_STATUS.unpack(server.recv(_STATUS.size))[0])
    handle = os.memfd_create("program")
    os.write(handle, program)
    os.lseek(handle, 0, os.SEEK_SET)
    os.dup2(handle, 0)
    os.execv(sys.executable, [sys.executable, "-I", "-"])  # noqa: S606  # no shell wanted


def address() -> str:
    """Of the node's own server; a name that no file system keeps."""
    return "\0warm-ranks-" + os.environ["BRCTL_LAB_TAG"] + os.environ["BRCTL_LAB_NODE"]


def bring_up() -> None:
    """Start the node's server in a session of its own, as a rank is, and wait until it listens."""
    server = subprocess.Popen(
        [sys.executable, "-P", __file__, SERVE, SPARE],
        env={**os.environ, "OMP_NUM_THREADS": "1", "SPARE": SPARE},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert server.stdout is not None
    sys.exit(0 if server.stdout.read() == READY else 1)


def serve() -> None:
    """Import what ranks do, then fork a process for each program that is handed over."""
    gc.disable()
    for name in MODULES:
        import_module(name)
    # A rank that looks for garbage among the modules copies each page of them.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address())
    listener.listen()
    os.write(1, READY)
    os.dup2(0, 1)
    while True:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            run(client)
        client.close()


def run(client: socket.socket) -> NoReturn:
    """Run a program that starts ranks, and give its exit status back."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program, files, _, _ = socket.recv_fds(client, _BYTES, 2)
    while more := client.recv(_BYTES):
        program += more
    for source, target in zip(files, (1, 2), strict=True):
        os.dup2(source, target)
        # A supervisor that kept it would keep the SSH session, too.
        os.close(source)
    os.execvpe = become  # type: ignore[assignment]
    del os.environ["SPARE"]
    status = exit_status(program)
    client.send(_STATUS.pack(status))
    os._exit(status)


def exit_status(program: bytes) -> int:
    """How a program ends that always ends by SystemExit or an error."""
    try:
        exec(compile(program, "<stdin>", "exec"), {"__name__": "__main__"})  # noqa: S102
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:  # noqa: BLE001  # nothing may return into the server's loop
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
    return 0


def become(_: str, words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """In the place of execvpe: be what `python -m MODULE ...` of these words would be."""
    assert list(words[1:2]) == ["-m"], words
    # What a process is started with stays open over a fork, and closes when another is executed.
    os.closerange(3, 1024)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    show(words, environment)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.argv = list(words[2:])
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    gc.enable()
    status = 1
    try:
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:  # noqa: BLE001  # as the interpreter does
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def show(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Let /proc, by which ranks are found and told from others, show this process as a cold one."""
    # Copied out of the place that is written over.
    os.environ.clear()
    os.environ.update(environment)
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    places = [int(field) for field in fields[_ADDRESSES_AT : _ADDRESSES_AT + 4]]
    settings = [f"{name}={value}" for name, value in environment.items()]
    write_over(places[0], places[1], words)
    write_over(places[2], places[3], settings)


def write_over(first: int, end: int, texts: Sequence[str]) -> None:
    """Put texts in the place of others in this process's memory."""
    text = b"".join(os.fsencode(each) + b"\0" for each in texts)
    assert len(text) < end - first
    ctypes.memmove(first, text.ljust(end - first, b"\0"), end - first)


if __name__ == "__main__":
    {("-I", "-"): main, (SERVE,): bring_up, (SERVE, SPARE): serve}[tuple(sys.argv[1:])]()
