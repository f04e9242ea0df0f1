"""RUNS ON THE NODE. Whether a rank that went back to a checkpoint is given the same batches again.

Steps between a checkpoint and a crash are run twice, and the ledger has the digest of each batch
both times. The first row of a start is marked, and its step may be no larger than the one before.
"""

import json
import os

from checks._progress.ledger_rows import is_number

READ_BYTES = 256 << 10


def newest_replay(path):
    """JSON of what the newest start replayed; empty where there was none, or no digests."""
    given, wrong, mistake, found = {}, {}, None, None
    starts = starts_in(rows_of(path))
    for rows in starts:
        found = compare(rows, given)
        if mistake and found["differs_at"] is None and goes_on(rows, wrong):
            found = mistake
        # What is known to be shifted is no measure for later starts; new data is.
        target = given if found["off"] is None else wrong
        target.update((row["step"], row) for row in rows)
        mistake = found if found["off"] is not None else mistake
    return json.dumps(found) if len(starts) > 1 else ""


def rows_of(path):
    """The newest rows that have a digest, oldest first."""
    rows, left = [], READ_BYTES
    for name in (path, path[: -len(".ndjson")] + ".old.ndjson"):
        try:
            with open(name, "rb") as stream:
                start = max(0, stream.seek(0, os.SEEK_END) - left)
                stream.seek(start)
                data = stream.read(left)
        except FileNotFoundError:
            break
        rows = [row for row in map(parse, data.split(b"\n")[1 if start else 0 : -1]) if row] + rows
        left -= len(data)
        if left <= 0:
            break
    return rows


def parse(line):
    try:
        row = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    known = isinstance(row, dict) and type(row.get("step")) is int
    return row if known and isinstance(row.get("digest"), str) else None


def starts_in(rows):
    """Rows start by start; of one that made no step nothing is there."""
    starts = []
    for row in rows:
        if not starts or row.get("start") is True or row["step"] <= starts[-1][-1]["step"]:
            starts.append([])
        starts[-1].append(row)
    return starts


def compare(rows, given):
    """How many steps were run before, and the first whose batch is another one."""
    at = {batch_of(row): step for step, row in given.items()}
    found = {"first": rows[0]["step"], "steps": 0, "differs_at": None, "off": None, "samples": None}
    for row in rows:
        before = given.get(row["step"])
        if before is None:
            # Right after a checkpoint nothing is replayed, but the first batch must be a new one.
            differs = row is rows[0] and batch_of(row) in at
        else:
            found["steps"] += 1
            differs = row["digest"] != before["digest"]
        if differs:
            off = batches_off(row, before, at.get(batch_of(row)))
            found.update(differs_at=row["step"], off=off, samples=samples_of(row, off))
        if differs or before is None:
            break
    return found


def batch_of(row):
    """A later epoch may have the same batches by right."""
    return str(row.get("epoch")), row["digest"]


def batches_off(row, before, given_at):
    """Batches that come twice, below 0 those left out; None where nothing tells."""
    if given_at is not None:
        return row["step"] - given_at
    positions = (row.get("position"), before.get("position"))
    if all(type(position) is int for position in positions) and positions[0] != positions[1]:
        return positions[1] - positions[0]
    return None


def samples_of(row, off):
    samples = row.get("samples")
    return None if off is None or not is_number(samples) else int(abs(off) * samples)


def goes_on(rows, wrong):
    """Whether a start goes on where one that was shifted had been."""
    here, before = wrong.get(rows[0]["step"]), wrong.get(rows[0]["step"] - 1)
    return before is not None if here is None else here["digest"] == rows[0]["digest"]
