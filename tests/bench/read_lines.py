"""How the rules alone read the composed lines that the model of words is taught by.

    python -m tests.bench.read_lines [--wrong]

Nobody wrote these lines with the rules in view: what is unread says what rules are blind to, what
is wrong or accused which rows read more than they should. Every line is judged as if it were a log.
"""

# ruff: noqa: E501 - lines of the report are read whole

import argparse
from collections import Counter, defaultdict

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict
from tests.bench.log_tables import Example, read_tables

_QUIET = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
OUTCOMES = (
    "right",
    "unread",
    "wrong",
    "sound kept",
    "sound accused",
    "victim kept",
    "victim claimed",
)


def read(index: LineIndex, text: str) -> LogVerdict:
    """What the rules say of a few lines."""
    reader = LineReader("log", index)
    for number, line in enumerate(text.splitlines(), 1):
        reader.read(number, line.encode())
    return judge("log", reader.events())


def outcome(row: Example, said: FaultClass) -> str:
    """Which of OUTCOMES it is; a class that the line may be as well is right."""
    if row.fault is FaultClass.NO_FAULT:
        return "sound kept" if said in _QUIET else "sound accused"
    if row.fault is FaultClass.UNKNOWN:
        return "victim kept" if said in _QUIET else "victim claimed"
    if said in (row.fault, *row.others):
        return "right"
    return "unread" if said in _QUIET else "wrong"


def main() -> None:
    """Print the outcomes of each file of the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="print what was claimed and is not so")
    options = parser.parse_args()
    index = LineIndex(SHIPPED)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in read_tables():
        said = read(index, row.text)
        found = outcome(row, said.fault)
        counts[row.section.partition(":")[0]][found] += 1
        counts["all"][found] += 1
        if options.wrong and found in ("wrong", "sound accused", "victim claimed"):
            rows = [line.signature for line in said.evidence[:1]]
            print(
                f"{found}: {row.fault} read as {said.fault} {said.probability} by {rows}: {row.text[:200]!r}"
            )
    print(f"{'':24}" + "".join(f"{name:>15}" for name in OUTCOMES))
    for name, seen in counts.items():
        print(f"{name:24}" + "".join(f"{seen[each]:>15}" for each in OUTCOMES))


if __name__ == "__main__":
    main()
