"""One of the processes a large fan-out is split over: serves the brctl that started it.

    python -m brctl.fanout.processes.shard KEEP    (its standard input is a connected Unix socket)

It ends when the other end closes or dies, and holds nothing but connections.
"""

import asyncio
import signal
import socket
import sys

from brctl.fanout.descriptors import raise_descriptor_limit
from brctl.fanout.processes.broker import Broker
from brctl.library.own_program import collect_rarely


async def serve(connected: socket.socket, keep: int) -> None:
    """Answer until the other end is gone."""
    broker = Broker(keep)
    reader, writer = await asyncio.open_unix_connection(sock=connected)
    try:
        await broker.serve(reader, writer)
    finally:
        await broker.close()


def main(arguments: list[str]) -> None:
    """Serve on standard input; Ctrl-C is for the process that reads it to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_rarely()
    raise_descriptor_limit()
    asyncio.run(serve(socket.socket(fileno=0), int(arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
