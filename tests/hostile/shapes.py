"""How a node that somebody owns may answer a sweep or a question about its ranks: shape by shape.

Every shape begins with what a healthy node of that name says, and turns it.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat

Lines = list[dict[str, object]]
Shape = Callable[[Lines, str], Iterator[bytes]]
CHUNK = 1 << 16
INNOCENT, INNOCENT_RANK = "n007", 6
"""Whom the liars speak about."""


def whole(lines: Lines) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _each_value(lines: Lines, turned: object) -> Iterator[bytes]:
    """Every measurement says this instead."""
    hole = '"\\u0000"'
    text = json.dumps(turned) if not isinstance(turned, bytes) else turned.decode()
    for line in lines:
        if isinstance(line.get("stdout"), str):
            envelope = json.loads(str(line["stdout"]))
            for row in envelope["measurements"]:
                row["value"] = "\0"
            line = {**line, "stdout": json.dumps(envelope).replace(hole, text)}
        yield whole([line])


def _said_of(lines: Lines, check: str, rows: list[tuple[str, str, object]]) -> Iterator[bytes]:
    """One check says more than its node can know."""
    for line in lines:
        if line.get("check") == check:
            envelope = json.loads(str(line["stdout"]))
            envelope["measurements"] += [
                {"name": name, "subject": subject, "value": value} for name, subject, value in rows
            ]
            line = {**line, "stdout": json.dumps(envelope)}
        yield whole([line])


def _of_every_rank(lines: Lines, rows: Mapping[str, object]) -> Iterator[bytes]:
    said = [(f"job.rank.{key}", f"rank:{rank}", v) for key, v in rows.items() for rank in range(64)]
    return _said_of(lines, "job.ranks", said)


def _of_own_rank(lines: Lines, node: str, rows: Mapping[str, object]) -> Iterator[bytes]:
    """What it alone could know, and lies about: the first row of a name is not the last."""
    own = f"rank:{int(node[1:]) - 1}"
    for line in lines:
        if line.get("check") == "job.ranks":
            envelope = json.loads(str(line["stdout"]))
            envelope["measurements"] = [
                {**row, "value": rows.get(row["name"].removeprefix("job.rank."), row["value"])}
                for row in envelope["measurements"]
                if row["subject"] == own
            ]
            line = {**line, "stdout": json.dumps(envelope)}
        yield whole([line])


def _kernel(lines: Lines, *texts: str) -> Iterator[bytes]:
    said: list[tuple[str, str, object]] = [("host.kernel.line", "", text) for text in texts]
    return _said_of(lines, "host.kernel", said)


def _wrong_types(lines: Lines, _node: str) -> Iterator[bytes]:
    wrong: tuple[object, ...] = (True, None, [], {}, -1, "", 1.5, [[]], {"a": {}})
    for number, line in enumerate(lines):
        yield whole([{key: wrong[(number + i) % 9] for i, key in enumerate(line)}])
        yield whole([line | {"stdout": wrong[number % 9], "exit": wrong[(number + 3) % 9]}])


def _drip(lines: Lines, _node: str) -> Iterator[bytes]:
    for byte in whole(lines):
        yield bytes([byte])
        time.sleep(0.2)


def _mute(_lines: Lines, _node: str) -> Iterator[bytes]:
    """Until whoever asked is gone: who says nothing is not told that nobody listens."""
    asker = os.getppid()
    while os.getppid() == asker:
        time.sleep(1)
    yield b""


SHAPES: Mapping[str, Shape] = {
    "huge numbers": lambda lines, _: _each_value(lines, b"1" + b"0" * 400),
    "digits without end": lambda lines, _: _each_value(lines, b"9" * 50_000),
    "no numbers": lambda lines, _: _each_value(lines, b"NaN"),
    "true everywhere": lambda lines, _: _each_value(lines, True),
    "extremes": lambda lines, _: _each_value(lines, -1e99),
    "deep JSON": lambda _, __: iter([b'{"type": "hello", "a": ' + b"[" * 100_000 + b"\n"]),
    "deep JSON inside": lambda lines, _: _each_value(lines, b"[" * 5_000),
    "a bomb of rows": lambda lines, _: _said_of(
        lines, "host.kernel", [("host.kernel.line", "", "NVRM: Xid (PCI:0000:3b:00): 79")] * 40_000
    ),
    "year 1": lambda lines, _: _kernel(
        lines, "0001-01-01T00:00:00+14:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, lost",
        "9999-12-31T23:59:59-14:00 x", "[999999999999.0] x",
    ),
    "control characters": lambda lines, _: _each_value(
        lines, "\x1b[2J\x1b]0;owned\x07\u202e\u2066\r\n=cmd|' /C calc'!A0[bold red]x[/]\ud800"
    ),
    "ranks of others": lambda lines, _: _of_every_rank(
        lines, {"alive": False, "exit_status": 1, "step": 1, "process_state": "D"}
    ),
    "the name of another": lambda lines, _: iter(
        [whole([{**line, "node": INNOCENT, "name": INNOCENT} for line in lines])]
    ),
    "faults of another": lambda lines, _: _kernel(
        lines, f"NVRM: Xid (PCI:0000:3b:00): 79, {INNOCENT}: GPU has fallen off the bus",
        f"nfs: server {INNOCENT} not responding, still trying",
        f"{INNOCENT} kernel: mce: [Hardware Error]: Machine check: uncorrectable",
    ),
    "far ahead": lambda lines, node: _of_own_rank(lines, node, {"step": 10**6}),
    "far behind, waiting for another": lambda lines, node: _of_own_rank(
        lines, node,
        {"step": 1, "phase": "all_reduce", "progress_age_s": 9e3, "phase_age_s": 9e3,
         "last_words": f"NCCL WARN timeout: rank {INNOCENT_RANK} on {INNOCENT} did not answer"},
    ),
    "its rank died": lambda lines, node: _of_own_rank(
        lines, node, {"alive": False, "exit_status": -9, "process_state": "Z"}
    ),
    "wrong schema": _wrong_types,
    "half an answer": lambda lines, _: iter([whole(lines)[: len(whole(lines)) // 2]]),
    "noise": lambda _, node: iter([bytes((i * 7 + len(node)) % 256 for i in range(200_000))]),
    "everything twice": lambda lines, _: iter([whole(lines) * 50]),
    "without end": lambda _, __: repeat(b"A" * CHUNK),
    "lines without end": lambda lines, _: repeat(whole(lines)),
    "drip": _drip,
    "mute": _mute,
}  # fmt: skip


def main(shape: str, node: str, answer: str) -> int:
    """Print an answer, turned; this is run as the node's Python."""
    with open(answer, encoding="utf-8") as stream:
        lines = [json.loads(line.replace("NOW", f"{time.time():.3f}")) for line in stream]
    try:
        for part in SHAPES[shape](lines, node):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
