"""RUNS ON THE NODE. Where the data loaders of all ranks were when a checkpoint was made.

`loader/rank-00003.json` of a checkpoint, as brctl's loader writes it: `of` ranks read data, this
one had `position` batches from the loader with the id `loader`, the last with that `digest`. Each
epoch may have a loader of its own, which counts anew. A checkpoint without the folder says nothing.
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
    before, name = positions_before(saves, save)
    for rank, row in sorted(ranks.items()):
        if rank in before and is_same_batch(row, before[rank]):
            return "the loader of rank %d is at batch %d, and was at %d in %s: it did not grow" % (
                rank, row["position"], before[rank]["position"], name,
            )  # fmt: skip
    return ""


def loader_remark(saves, save):
    """Which loader began anew since the checkpoint before: an epoch of its own, or a wrong one."""
    before, name = positions_before(saves, save)
    for rank, row in sorted((positions_in(save.path) or ({}, ""))[0].items()):
        if rank in before and row["position"] < before[rank]["position"]:
            return "%s: the loader of rank %d is at batch %d, and was at %d in %s" % (
                save.name, rank, row["position"], before[rank]["position"], name,
            )  # fmt: skip
    return ""


def positions_before(saves, save):
    """({rank: row}, name) of the newest earlier checkpoint that keeps all of them."""
    for earlier in reversed([other for other in saves if other.step < save.step]):
        before = positions_in(earlier.path)
        if before is not None and not before[1]:
            return before[0], earlier.name
    return {}, ""


def is_same_batch(row, before):
    return all(row.get(name) == before.get(name) for name in ("position", "digest", "loader"))


def positions_in(path):
    """({rank: row}, problem) of a checkpoint; None where it keeps none."""
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
        ranks[int(match.group(1))], of = row, max(of, row["of"])
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
