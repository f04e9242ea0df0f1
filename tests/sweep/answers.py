"""Checks and runner output for the tests of this folder."""

import json
import textwrap

from brctl.model.command import CommandResult, Outcome
from brctl.model.sweeps.check import Check, MeasurementSpec
from tests.timeouts import TIMEOUT_S

MEASURING = """
import json, sys
def main():
    parameters = json.load(sys.stdin)
    value = parameters.get("value", 7)
    print(json.dumps({"measurements": [{"name": "m", "subject": "", "value": value}], "notes": []}))
if __name__ == "__main__":
    main()
"""


def check(
    name: str, source: str = MEASURING, needs: tuple[str, ...] = (), deadline_s: float = TIMEOUT_S,
    level: int = 1, stream: bool = False, optional: bool = False,
) -> Check:  # fmt: skip
    return Check(
        name=name, title="", why="", source="", level=level, needs=frozenset(needs), tools=(),
        deadline_s=deadline_s, parameters={},
        measurements={"m": MeasurementSpec("m", "count", "a number", optional=optional)},
        rules=(), cross_check="", probe_source=textwrap.dedent(source), stream=stream,
    )  # fmt: skip


HELLO = {"type": "hello", "python": "3.9.2", "node": "n1", "login_s": 0.31}


def envelope(*values: object, notes: tuple[str, ...] = ()) -> str:
    rows = [{"name": "m", "subject": "", "value": value} for value in values]
    return json.dumps({"measurements": rows, "notes": list(notes)})


def result(name: str, stdout: str, **more: object) -> dict[str, object]:
    base = {"type": "result", "check": name, "exit": 0, "seconds": 0.1, "timed_out": False,
            "over_limit": False, "abandoned": False, "stdout": stdout, "stderr": ""}  # fmt: skip
    return {**base, **more}


def answer(
    *lines: object, outcome: Outcome = Outcome.ANSWERED, stderr: bytes = b""
) -> CommandResult:
    stdout = b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )
    return CommandResult(
        "n1", outcome, 0, stdout, stderr, 1.0, "why" if outcome != "answered" else ""
    )


def end(count: int) -> dict[str, object]:
    return {"type": "end", "count": count, "cpu_s": 0.05}
