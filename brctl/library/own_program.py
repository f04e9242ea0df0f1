"""How brctl starts a part of itself as a process of its own."""

import atexit
import gc
import os
import sys
from collections.abc import MutableMapping

_GARBAGE_OBJECTS = 20_000
"""How many new objects start a collection; at Python's 700 a fan-out spends 7 % of its CPU so."""


def collect_rarely() -> None:
    """Look for garbage seldom, and at the end not at all: all of it goes with the process.

    Before the imports, whose objects stay: a third of what a short command costs was spent on them.
    """
    gc.set_threshold(_GARBAGE_OBJECTS, 20, 50)
    atexit.register(gc.freeze)


def own_program(module: str, *arguments: str) -> list[str]:
    """The command line that runs one of our modules, whatever directory it is started in.

    `python -m` alone puts the current directory before everything else: a `brctl/` or `asyncssh.py`
    that somebody left there would run as the operator. `-P` leaves that directory out.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def forget_current_directory(environ: MutableMapping[str, str], path: list[str]) -> bool:
    """Take the current directory out of where modules are looked for, if an empty entry put it in.

    `PYTHONPATH=:/opt/x`, as `PYTHONPATH=$PYTHONPATH:/opt/x` often becomes, means the current
    directory first, whatever `-P` says: for what is imported from here on, and for our processes.

    Returns:
        Whether there was such an entry.
    """
    entries = environ.get("PYTHONPATH", "").split(os.pathsep)
    if len(entries) == 1 or all(entries):
        return False
    kept = [entry for entry in entries if entry]
    environ["PYTHONPATH"] = os.pathsep.join(kept)
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return True
    if here not in map(os.path.abspath, kept):
        path[:] = [entry for entry in path if entry not in ("", here)]
    return True
