"""How brctl starts a part of itself as a process of its own."""

import sys


def own_program(module: str, *arguments: str) -> list[str]:
    """The command line that runs one of our modules, whatever directory it is started in.

    `python -m` alone puts the current directory before everything else: a `brctl/` or `asyncssh.py`
    that somebody left there would run as the operator. `-P` leaves that directory out.
    """
    return [sys.executable, "-P", "-m", module, *arguments]
