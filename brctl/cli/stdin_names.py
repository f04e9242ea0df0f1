"""Node names from stdin, for `-w -` and for `-` where a command takes NODES."""

import sys

from brctl.model.errors import UsageError

FROM_STDIN = "-"
STDIN_LIMIT = 4 * 1024 * 1024
"""More than the names of any fleet: a pipe that never ends must not eat the memory."""


def nodes_text(text: str) -> str:
    """What a text of nodes means: itself, or for `-` the names on stdin, joined.

    Names stand apart by spaces, commas or lines; `#` begins a comment.

    Raises:
        UsageError: Nothing is there: an empty pipe must not become every node.
    """
    if text != FROM_STDIN:
        return text
    words = [word for line in _read().splitlines() for word in line.partition("#")[0].split()]
    names = [name for word in words for name in [word.strip(",")] if name]
    if not names:
        raise UsageError("-: no node names on stdin")
    return ",".join(names)


def _read() -> str:
    data = sys.stdin.read(STDIN_LIMIT + 1)
    if len(data) > STDIN_LIMIT:
        raise UsageError(f"-: more than {STDIN_LIMIT} characters of node names on stdin")
    return data
