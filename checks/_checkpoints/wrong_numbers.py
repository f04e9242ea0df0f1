"""RUNS ON THE NODE. Whether wrong numbers were known of when a checkpoint was made.

`numbers/rank-00003.json` of a checkpoint, as brctl's numeric checks write it when they have found
something: the weights in it are computed from those numbers. A checkpoint without says nothing.
"""

import json
import os
import re

NAME = re.compile(r"rank-(\d{5,7})\.json$")
SIZE_LIMIT = 65536
UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip


def wrong_numbers_in(path):
    """The earliest finding as a reason not to go on from it; "" where there is none."""
    folder = os.path.join(path, "numbers")
    if not os.path.isdir(folder):
        return ""
    try:
        names = sorted(os.listdir(folder))
    except OSError as exc:
        return "numbers: %s: %s" % (type(exc).__name__, exc)
    found = [read_mark(folder, name) for name in names if NAME.match(name)]
    return min(found)[1] if found else ""


def read_mark(folder, name):
    """(step, words) of one rank's; one that cannot be read is the earliest."""
    try:
        with open(os.path.join(folder, name)) as stream:
            row = json.loads(stream.read(SIZE_LIMIT))
        step, kind = int(row["step"]), str(row["kind"])
        place = str(row.get("tensor") or row.get("module") or "the reduced gradient")
    except UNREADABLE as exc:
        return 0, "numbers/%s: %s: %s" % (name, type(exc).__name__, exc)
    return step, "numbers were wrong since step %d, before it was saved: %s (%s)" % (
        step, place[:100], kind[:20],
    )  # fmt: skip
