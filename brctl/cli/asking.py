"""Whether somebody sits at this terminal and may be asked, and a question with one key to press."""

import os
import sys
import termios

from brctl.cli.invocation import Invocation
from brctl.cli.output import say

_INTERRUPT = b"\x03"


def can_ask(invocation: Invocation) -> bool:
    """A terminal to read from, nobody said --no-input, and the answer is for people."""
    return sys.stdin.isatty() and not invocation.no_input and invocation.output == "table"


def says_yes(question: str) -> bool:
    """Ask at the terminal; one key is the answer, and every key but y means no.

    Raises:
        KeyboardInterrupt: It was Ctrl-C.
    """
    return answer_to(question, "y") == "y"


def answer_to(question: str, keys: str) -> str:
    """Which of these keys was pressed, of either case; "" for every other, which means no.

    Raises:
        KeyboardInterrupt: It was Ctrl-C.
    """
    sys.stderr.write(f"{question} [{'/'.join(keys)}/N]: ")
    sys.stderr.flush()
    key = _key(sys.stdin.fileno())
    say("")
    if key == _INTERRUPT:
        raise KeyboardInterrupt
    pressed = key.decode("ascii", "replace").lower()
    return pressed if pressed and pressed in keys else ""


def _key(terminal: int) -> bytes:
    """The next key, without Enter; Ctrl-C is one, for a loop that runs would keep the signal.

    A terminal that is gone presses none.
    """
    try:
        before = termios.tcgetattr(terminal)
        at_once = termios.tcgetattr(terminal)
        at_once[3] &= ~(termios.ICANON | termios.ISIG)
        try:
            # What was typed ahead stays: a script at a pseudo-terminal answers before it is asked.
            termios.tcsetattr(terminal, termios.TCSADRAIN, at_once)
            return os.read(terminal, 1)
        finally:
            # What came with this answer is none to the next question.
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
    except (OSError, termios.error):
        return b""
