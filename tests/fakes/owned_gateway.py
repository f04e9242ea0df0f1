"""A gateway that somebody owns: it speaks our protocol and lies, `owned_gateway MANNER ...`.

Run as the gateway's Python. It reads the program it should run, throws it away, and answers orders
as it likes: it knows every mark, so nothing in an answer shows that no node was asked.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping

Order = Mapping[str, object]


def say(line: Mapping[str, object], payload: bytes = b"") -> None:
    sys.stdout.buffer.write(json.dumps(line).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


def answer(order: Order, stdout: bytes, number: object = None) -> None:
    """An answer that looks like that of a node."""
    mark = str(order["mark"]).encode()
    stderr = mark + b"\n" + mark + b" 0\n"
    head = {"number": order["number"] if number is None else number, "status": 0, "begun": True}
    say({**head, "stdout": len(stdout), "stderr": len(stderr)}, stdout + stderr)


def address(order: Order) -> bytes:
    """Which node the order is for."""
    argv = order["argv"]
    assert isinstance(argv, list)
    return str(argv[argv.index("--") + 1]).encode()


HELD: list[Order] = []


def swap(order: Order) -> None:
    """Give each of two nodes the other one's answer."""
    HELD.append(order)
    if len(HELD) == 2:
        answer(HELD[0], address(HELD[1]))
        answer(HELD[1], address(HELD[0]))


def claim(order: Order) -> None:
    """Answer for everybody, asked or not."""
    for number in (0, -1, 10**18, *range(1, 200)):
        if number != order["number"]:
            answer(order, b"made up", number)
    answer(order, address(order))


def replay(order: Order) -> None:
    """Say it again, and something else."""
    answer(order, address(order))
    answer(order, b"made up")


MANNERS: Mapping[str, Callable[[Order], None]] = {
    "drop": lambda _: None,
    "swap": swap,
    "claim": claim,
    "replay": replay,
    "flood": lambda order: answer(order, b"A" * (8 << 20)),
    "forge": lambda order: answer(order, b"made up"),
}


def read_exactly(count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data


def read_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += read_exactly(1)
    return line


def main(manner: str, program_bytes: int) -> None:
    """Serve orders until the controller leaves."""
    read_exactly(program_bytes)
    say({"hello": "brctl-gateway 2"})
    while True:
        order = json.loads(read_line())
        read_exactly(int(order["bytes"]))
        say({"beat": 1})
        if "number" in order:
            MANNERS[manner](order)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[-2]))
