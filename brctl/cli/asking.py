"""Whether somebody sits at this terminal and may be asked."""

import sys

from brctl.cli.invocation import Invocation


def can_ask(invocation: Invocation) -> bool:
    """A terminal to read from, nobody said --no-input, and the answer is for people."""
    return sys.stdin.isatty() and not invocation.no_input and invocation.output == "table"
