"""An interactive shell on one node: this terminal's keys go there, its screen comes here."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import threading
import tty
from collections.abc import Iterator

import paramiko

from brctl.fanout.paramiko.execution import GONE
from brctl.fanout.paramiko.login import log_in
from brctl.library.config import SshSettings
from brctl.model.command import Outcome
from brctl.model.inventory import Node

_CHUNK_BYTES = 1 << 14
_LOOK_S = 0.5


def open_shell(
    node: Node, ssh: SshSettings, stdin: int, stdout: int, term: str = "xterm"
) -> tuple[Outcome, int | None]:
    """Follow a login shell on a node until it ends.

    Args:
        node: The node; known_hosts is checked as for any command.
        ssh: Deadlines, user and keys.
        stdin: Descriptor that keys are read from; put into raw mode when it is a terminal.
        stdout: Descriptor the shell's output is written to, unchanged.
        term: Kind of terminal to announce.

    Returns:
        ANSWERED and the shell's status, or DIED and None when the connection broke.

    Raises:
        LoginFailedError: There was no login; says which outcome applies.
    """
    client = log_in(node, ssh)
    try:
        columns, rows = _size(stdout)
        channel = client.invoke_shell(term, columns, rows)
        with _raw(stdin), _resizing(channel, stdout):
            _follow(channel, stdin, stdout)
        # The status may come a moment after the last output; -1 stands for none at all.
        channel.status_event.wait(_LOOK_S)
        status = channel.exit_status
    finally:
        client.close()
    return (Outcome.DIED, None) if status < 0 else (Outcome.ANSWERED, status)


def _follow(channel: paramiko.Channel, stdin: int, stdout: int) -> None:
    sources: list[paramiko.Channel | int] = [channel, stdin]
    while True:
        ready, _, _ = select.select(sources, [], [], _LOOK_S)
        if channel in ready:
            data = channel.recv(_CHUNK_BYTES)
            if not data:
                return
            _write(stdout, data)
        if stdin in ready:
            keys = os.read(stdin, _CHUNK_BYTES)
            if keys:
                channel.sendall(keys)
            else:
                sources.remove(stdin)
                channel.shutdown_write()
        if channel.closed and not channel.recv_ready():
            return


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _size(descriptor: int) -> tuple[int, int]:
    try:
        packed = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        return 80, 24
    rows, columns = struct.unpack("HHHH", packed)[:2]
    return columns or 80, rows or 24


@contextlib.contextmanager
def _raw(stdin: int) -> Iterator[None]:
    """Every key goes to the node, Ctrl-C included; the terminal is put back whatever happens."""
    if not os.isatty(stdin):
        yield
        return
    before = termios.tcgetattr(stdin)
    try:
        tty.setraw(stdin, termios.TCSADRAIN)  # what was typed ahead is meant for the shell
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _resizing(channel: paramiko.Channel, stdout: int) -> Iterator[None]:
    """The node's terminal follows this window's size; only a main thread hears of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def resized(_number: int, _frame: object) -> None:
        columns, rows = _size(stdout)
        with contextlib.suppress(*GONE):
            channel.resize_pty(columns, rows)

    before = signal.signal(signal.SIGWINCH, resized)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
