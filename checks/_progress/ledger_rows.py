"""RUNS ON THE NODE. The newest steps of a rank's ledger, as short as they can be told."""

import json
import os

TAIL_BYTES = 48 << 10
STEPS = 100
TEXT_LIMIT = 4000  # the controller keeps no longer text of one reading


def newest_steps(path):
    """JSON of up to a hundred steps in a row; empty where there is no ledger."""
    try:
        with open(path, "rb") as stream:
            start = max(0, stream.seek(0, os.SEEK_END) - TAIL_BYTES)
            rows = rows_from(stream, start)
    except FileNotFoundError:
        return ""
    steps = STEPS
    while rows and len(json.dumps(series(rows[-steps:]))) > TEXT_LIMIT:
        steps = steps * 3 // 4
    return json.dumps(series(rows[-steps:])) if rows else ""


def rows_from(stream, start):
    """The newest rows without a gap between two steps."""
    stream.seek(start)
    rows = []
    for line in stream.read(TAIL_BYTES).split(b"\n")[1 if start else 0 : -1]:
        try:
            row = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if not isinstance(row, dict) or not is_number(row.get("step")):
            continue
        if rows and row["step"] != rows[-1]["step"] + 1:
            rows = []
        rows.append(row)
    return rows


def series(rows):
    """Each series whole, or not at all."""
    found = {"first": int(rows[0]["step"])}
    for name in ("load", "compute", "wait", "cost"):
        if all(is_number(row.get(name)) for row in rows):
            found[name] = [float("%.4g" % row[name]) for row in rows]
    source = rows[-1].get("source")
    if isinstance(source, str):
        found["source"] = source[:80]
    return found


def is_number(value):
    """Whether a job wrote a number here that can be one: no flag, no NaN, no infinity."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15
