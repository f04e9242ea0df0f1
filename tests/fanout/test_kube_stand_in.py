"""The stand-in for a kubelet leaves no process behind whose client has gone."""

import queue
import signal
import socket
import struct
import subprocess
import threading
import zlib

from tests.fakes.kube.spdy import DICTIONARY, SYN_STREAM, ExecSession
from tests.timeouts import TIMEOUT_S

STREAMS = ("error", "stdin", "stdout", "stderr")
MORE_THAN_A_PIPE = bytes(1 << 17)


def opening() -> bytes:
    """What a client sends first: one stream of each type, by odd numbers."""
    deflate, frames = zlib.compressobj(zdict=DICTIONARY), b""
    for number, name in enumerate(STREAMS):
        texts = b"".join(struct.pack(">I", len(t)) + t for t in (b"streamtype", name.encode()))
        block = deflate.compress(struct.pack(">I", 1) + texts) + deflate.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", 2 * number + 1, 0, 0) + block
        frames += struct.pack(">HHI", 0x8003, SYN_STREAM, len(body)) + body
    return frames


def stdin(data: bytes) -> bytes:
    return struct.pack(">II", 2 * STREAMS.index("stdin") + 1, len(data)) + data


def test_a_process_that_reads_nothing_ends_with_its_client() -> None:
    """More input waits than is held for it, so nobody reads that the connection is closed."""
    started: queue.Queue[subprocess.Popen[bytes]] = queue.Queue()

    def start() -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            ["sleep", "600"], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        started.put(process)
        return process

    client, server = socket.socketpair()
    with server, server.makefile("rb") as incoming:
        session = ExecSession(incoming, server.sendall)
        serving = threading.Thread(target=session.serve, args=(set(STREAMS), start), daemon=True)
        serving.start()
        with client:
            client.sendall(opening())
            process = started.get(timeout=TIMEOUT_S)
            client.sendall(stdin(MORE_THAN_A_PIPE) + 8 * stdin(b"more"))
        serving.join(TIMEOUT_S)
        hangs = serving.is_alive()
        process.kill()
        serving.join(TIMEOUT_S)
    assert not hangs
    assert process.returncode == -signal.SIGKILL
