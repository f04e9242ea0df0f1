"""One rank of a made-up job: micro-batches through a pipeline, then an exchange of gradients.

    python -m tests.bench.placement.minipod_rank SETUP.json PLACE

Bytes are real and cross the network of the node it runs on; computing is waiting. Places are those
of a job of pp 2 x dp 2 in rank order: pipelines 0-1 and 2-3, data-parallel pairs 0-2 and 1-3.
"""

import json
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Thread

DEADLINE_S = 60.0
PORT = 7400


@dataclass(frozen=True)
class Traffic:
    """What a step moves and how long it computes.

    Attributes:
        activation_bytes: Of a micro-batch, forward, and as much backward.
        gradient_bytes: Each rank sends and receives so many in a step.
        compute_s: Of a micro-batch on one stage.
    """

    activation_bytes: int
    gradient_bytes: int
    microbatches: int
    compute_s: float
    steps: int


def main() -> None:
    """Join the other ranks, make the steps; place 0 prints the median of their seconds."""
    setup, place = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    traffic = Traffic(**setup["traffic"])
    pipeline = _joined(setup["addresses"], place, place ^ 1)
    replica = _joined(setup["addresses"], place, place ^ 2)
    seconds = []
    for _ in range(traffic.steps):
        began = time.perf_counter()
        _microbatches(pipeline, traffic, first_stage=place % 2 == 0)
        _exchange(replica, traffic.gradient_bytes)
        seconds.append(time.perf_counter() - began)
    if place == 0:
        print(json.dumps({"step_s": median(seconds[1:])}))


def _joined(addresses: list[str], place: int, other: int) -> socket.socket:
    """A connection to the rank of another place; the lower of both listens."""
    low, high = sorted((place, other))
    port = PORT + 10 * low + high
    if place == low:
        with socket.create_server((addresses[place], port)) as server:
            server.settimeout(DEADLINE_S)
            link = server.accept()[0]
    else:
        link = _connected((addresses[other], port))
    link.settimeout(DEADLINE_S)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def _connected(address: tuple[str, int]) -> socket.socket:
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            return socket.create_connection(address, 1.0)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _microbatches(link: socket.socket, traffic: Traffic, *, first_stage: bool) -> None:
    """All forward, then all backward (GPipe): what waits in the network hides no computing."""
    one = bytes(traffic.activation_bytes)
    for sends in (first_stage, not first_stage):
        for _ in range(traffic.microbatches):
            if not sends:
                _receive(link, len(one))
            time.sleep(traffic.compute_s)
            if sends:
                link.sendall(one)


def _exchange(link: socket.socket, size: int) -> None:
    """Both ways at once, as an all-reduce of two."""
    sending = Thread(target=link.sendall, args=(bytes(size),))
    sending.start()
    _receive(link, size)
    sending.join()


def _receive(link: socket.socket, size: int) -> None:
    left = size
    while left:
        read = len(link.recv(min(left, 1 << 16)))
        if not read:
            raise ConnectionError("the other rank ended")
        left -= read


if __name__ == "__main__":
    main()
