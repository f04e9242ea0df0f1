"""One command at a time, and none that a signal can stop half way."""

import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from brctl.lab.spec import LabPaths
from brctl.model.errors import LockedError, UsageError

LOCK_TIMEOUT_S = 5.0


@contextmanager
def locked(paths: LabPaths) -> Iterator[None]:
    """Hold the lab's directory, so that two commands never change one lab at once."""
    try:
        handle = os.open(paths.root, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as exc:
        raise UsageError(f"no lab is up in {paths.root}", hint="brctl lab up") from exc
    try:
        _acquire(handle, paths)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, paths: LabPaths) -> None:
    """Lock, with some patience: a killed command's last child holds its lock until it runs."""
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            if time.monotonic() > deadline:
                message = f"another command is changing the lab in {paths.root}"
                raise LockedError(message) from exc
            time.sleep(0.02)
        else:
            return


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Let a polite kill end `up` the way Ctrl-C does, so that it cleans up."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with _signal_handlers({signal.SIGTERM: stop, signal.SIGHUP: stop}):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """A second Ctrl-C must not leave half a lab behind; ending one takes a second at most."""
    ignore = signal.SIG_IGN
    with _signal_handlers({number: ignore for number in (signal.SIGINT, signal.SIGTERM)}):
        yield


@contextmanager
def _signal_handlers(wanted: Mapping[signal.Signals, object]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in wanted}
    for number, handler in wanted.items():
        signal.signal(number, handler)  # type: ignore[arg-type]  # a handler or SIG_IGN
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
