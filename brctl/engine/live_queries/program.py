"""A program for nodes with one request, both on standard input: nothing touches the node's disk."""

import json
from collections.abc import Mapping
from functools import cache

from brctl.library.shipped import joined_program, node_program
from brctl.model.command import Command
from brctl.model.inventory import Node

START_S = 10.0
"""Room for the transfer and for starting Python."""

_BOOT = (
    "import sys\n"
    "r=sys.stdin.buffer\n"
    "p=r.read(int(r.readline()))\n"
    "exec(compile(p,'program','exec'),{'__name__':'__main__'})"
)
"""The program comes first and reads its request from what is left."""


def command_of(
    node: Node,
    program: str,
    request: Mapping[str, object],
    *,
    asks: str,
    seconds: float,
    output_bytes: int,
) -> Command:
    """The command that runs a program below `checks` with a request."""
    text = _text(program)
    return Command(
        argv=(node.python, "-I", "-S", "-B", "-c", _BOOT),
        stdin=b"%d\n%s%s" % (len(text), text, json.dumps(request).encode()),
        deadline_s=seconds + START_S,
        output_limit_bytes=output_bytes,
        asks=(asks,),
    )


@cache
def _text(program: str) -> bytes:
    return joined_program(node_program(program)).encode()
