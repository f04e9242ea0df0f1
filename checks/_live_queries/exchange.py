"""RUNS ON THE NODE. Questions over sockets, bounded in bytes and time whoever answers."""

import ctypes
import os
import time

CLONE_NEWNET = 0x40000000


class Deadline(object):
    """A moment on the monotonic clock; a drop a second does not move it."""

    def __init__(self, seconds):
        self._ends = time.monotonic() + seconds

    def left_s(self):
        return self._ends - time.monotonic()


def receive(connection, deadline, limit, until=None):
    """(bytes, how it ended): `closed`, `until`, `limit` or `late`; never more bytes than the limit.

    With `until` it ends behind the first of these bytes.
    """
    data = b""
    while len(data) < limit:
        left_s = deadline.left_s()
        if left_s <= 0:
            return data, "late"
        connection.settimeout(left_s)
        try:
            piece = connection.recv(min(65536, limit - len(data)))
        except OSError as error:
            return data, "late" if is_timeout(error) else "closed"
        if not piece:
            return data, "closed"
        data += piece
        if until is not None and until in data:
            return data, "until"
    return data, "limit"


def is_timeout(error):
    return type(error).__name__ in ("timeout", "TimeoutError", "BlockingIOError")


def enter_network_of(pid):
    """Into the network of a process in another namespace; "" or why that cannot be."""
    try:
        mine, theirs = os.stat("/proc/self/ns/net"), os.stat("/proc/%d/ns/net" % pid)
        if (mine.st_dev, mine.st_ino) == (theirs.st_dev, theirs.st_ino):
            return ""
        with open("/proc/%d/ns/net" % pid) as stream:
            library = ctypes.CDLL(None, use_errno=True)
            if library.setns(stream.fileno(), CLONE_NEWNET) == 0:
                return ""
        return "its network namespace: %s" % os.strerror(ctypes.get_errno())
    except OSError as error:
        return "its network namespace: %s" % error.strerror
