"""Ports that nobody else on this machine gets while a test means to use them.

One that the kernel chose and that was given back may be somebody else's when torch, sshd or Slurm
comes to bind it seconds later: four workers start servers all the time.
"""

import atexit
import os
import random
import socket
from collections import deque
from contextlib import suppress

_RANGE = range(31_000, 32_700)
"""Above the ports of labs (brctl.lab) and below those that Linux gives to connections by itself."""

_KEPT = 100
"""More than one test has in use; so many stay with the process that chose them."""

_held: deque[socket.socket] = deque()


@atexit.register
def _give_back() -> None:
    """Python warns of each socket that it must close itself, as late as nobody can hear it."""
    while _held:
        _held.popleft().close()


_order = random.Random(os.getpid())


def free_port() -> int:
    """A port nobody listens on, of any address, and that no other test of this machine gets."""
    for port in _order.sample(_RANGE, len(_RANGE)):
        mark = _mark(port)
        if mark is not None and _is_free(port):
            _held.append(mark)
            if len(_held) > _KEPT:
                _held.popleft().close()
            return port
        if mark is not None:
            mark.close()
    raise AssertionError(f"no free port from {_RANGE.start} to {_RANGE.stop}")


def _mark(port: int) -> socket.socket | None:
    """A name that one process can have, until it gives it back or ends; None if taken."""
    mark = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        mark.bind(f"\0brctl-test-port-{port}")
        return mark
    mark.close()
    return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
