"""End the brokers that a test started: each would wait five minutes for the next command."""

import contextlib
import os
import signal
import time
from pathlib import Path

from brctl.fanout.processes.broker_place import LOCK_NAME, acquire_lock


def end_brokers(folder: Path) -> None:
    """Kill the broker of a folder, and keep its lock for as long as the tests run.

    Two clients start two; the second, if it comes up only after the first was killed, finds no
    lock held and would stay behind. Once a folder: its lock is this process's from then on.
    """
    while folder.exists() and acquire_lock(folder) is None:
        with contextlib.suppress(OSError, ValueError):
            holder = int((folder / LOCK_NAME).read_text())
            assert holder != os.getpid(), f"{folder} was ended before"
            os.kill(holder, signal.SIGKILL)
        time.sleep(0.01)
