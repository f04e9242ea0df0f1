"""RUNS ON THE NODE. Where the data loaders of all ranks were when a checkpoint was made.

`loader/rank-00003.json` of a checkpoint, as brctl's loader writes it: `of` ranks read data, this
one had `position` batches. A checkpoint without the folder says nothing of loaders.
"""

import json
import os
import re

NAME = re.compile(r"rank-(\d{5,7})\.json$")
SIZE_LIMIT = 65536


def loader_problem(saves, save):
    """Why no loader should resume from a checkpoint; "" where nothing speaks against it."""
    found = positions_in(save.path)
    if found is None:
        return ""
    ranks, problem = found
    if problem:
        return problem
    for earlier in reversed([other for other in saves if other.step < save.step]):
        before = positions_in(earlier.path)
        if before is not None and not before[1]:
            return frozen(ranks, before[0], earlier.name)
    return ""


def frozen(ranks, before, name):
    """The first rank whose position did not grow since the checkpoint before."""
    for rank, position in sorted(ranks.items()):
        if rank in before and position <= before[rank]:
            return "the loader of rank %d is at batch %d, and was at %d in %s: it did not grow" % (
                rank, position, before[rank], name,
            )  # fmt: skip
    return ""


def positions_in(path):
    """({rank: position}, problem) of a checkpoint; None where it keeps none."""
    folder = os.path.join(path, "loader")
    if not os.path.isdir(folder):
        return None
    ranks, of = {}, 0
    for name in sorted(os.listdir(folder)):
        match = NAME.match(name)
        if not match:
            continue
        try:
            row = read_position(os.path.join(folder, name))
        except (OSError, ValueError, KeyError, TypeError) as exc:
            return {}, "loader/%s: %s: %s" % (name, type(exc).__name__, exc)
        ranks[int(match.group(1))], of = row["position"], max(of, row["of"])
    missing = [rank for rank in range(min(of, 1 << 20)) if rank not in ranks]
    if missing or not ranks:
        first = "loader/rank-%05d.json is missing" % (missing or [0])[0]
        return ranks, "%s (%d of %d loader states)" % (first, len(ranks), of)
    return ranks, ""


def read_position(path):
    with open(path) as stream:
        row = json.loads(stream.read(SIZE_LIMIT))
    for name in ("position", "of"):
        if type(row[name]) is not int or row[name] < 0:
            raise ValueError("%s is no count" % name)
    return row
