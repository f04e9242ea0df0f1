"""RUNS ON THE NODE. Where the data loaders of all ranks were when a checkpoint was made.

`loader/rank-00003.json` of a checkpoint, as brctl's loader writes it: `of` ranks read data, this
one had `position` batches from the loader with the id `loader`, the last with that `digest`. Each
epoch may have a loader of its own, which counts anew. `samples` count from `since_step`, 0 where
it is not said, and all ranks together are given `global_batch` a step. What the loader needs to go
on is in `loader/rank-00003.state.json`. A checkpoint without the folder says nothing.
"""

import hashlib
import json
import os
import re

NAME = re.compile(r"rank-(\d{5,7})\.json$")
SIZE_LIMIT = 65536
SAVES_LIMIT = 64


def loader_problem(saves, save, verify=False):
    """Why no loader should resume from a checkpoint; "" where nothing speaks against it."""
    found = positions_in(save.path)
    if found is None:
        return ""
    ranks, problem = found
    problem = problem or state_problem(save.path, ranks, verify)
    if problem:
        return problem
    before, name = positions_before(saves, save)
    for rank, row in sorted(ranks.items()):
        if rank in before and is_same_batch(row, before[rank]):
            return "the loader of rank %d is at batch %d, and was at %d in %s: it did not grow" % (
                rank, row["position"], before[rank]["position"], name,
            )  # fmt: skip
    return ""


def state_problem(path, ranks, verify):
    """What is wrong with what loaders go on from: a size, or the contents when asked."""
    for rank, row in sorted(ranks.items()):
        if "state_bytes" not in row:
            continue
        name = "rank-%05d.state.json" % rank
        try:
            found = os.path.getsize(os.path.join(path, "loader", name))
            if found != row["state_bytes"]:
                return "loader/%s: %d bytes of %s" % (name, found, row["state_bytes"])
            if verify and digest_of(os.path.join(path, "loader", name)) != row.get("state_sha256"):
                return "loader/%s is not what was saved: its digest differs" % name
        except OSError as exc:
            return "loader/%s: %s: %s" % (name, type(exc).__name__, exc)
    return ""


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def loader_remark(saves, save):
    """Which loader began anew since the checkpoint before: an epoch of its own, or a wrong one."""
    before, name = positions_before(saves, save)
    for rank, row in sorted((positions_in(save.path) or ({}, ""))[0].items()):
        if rank in before and row["position"] < before[rank]["position"]:
            return "%s: the loader of rank %d is at batch %d, and was at %d in %s" % (
                save.name, rank, row["position"], before[rank]["position"], name,
            )  # fmt: skip
    return ""


def loader_note(save, saves=(), told=None):
    """What the loader states of a checkpoint say together; "" where it has not all of them.

    `told` keeps what was read of checkpoints from one call to the next.
    """
    ranks, problem = positions_in(save.path) or ({}, "")
    if problem or not ranks:
        return ""
    states = "%d of %d loader states" % (len(ranks), len(ranks))
    given = given_in(ranks)
    if given is None or given[2] > save.step:
        return states
    samples, batch, since = given
    rank = min(ranks)
    if "since_step" in ranks[rank]:
        parts = [(save.step - since, batch, batch)]
        return "%s, %s" % (states, said_of_sum(samples, parts, since))
    first, parts = since_the_oldest(saves, save, rank, batch, {} if told is None else told)
    if first is None:
        return "%s, %s" % (states, said_of_first(samples, save.step, batch))
    return "%s, %s" % (states, said_of_sum(samples, parts, 0, first))


def given_in(ranks):
    """(samples of all loaders, global batch, step they count from); None where not all say it."""
    samples = [row.get("samples") for row in ranks.values()]
    batches = [row.get("global_batch") for row in ranks.values()]
    starts = [row.get("since_step", 0) for row in ranks.values()]
    if not all(map(is_count, samples + batches + starts)):
        return None
    if len(set(batches)) != 1 or len(set(starts)) != 1:
        return None
    return sum(samples), batches[0], starts[0]


def since_the_oldest(saves, save, rank, batch, told):
    """((step, samples), parts) of the oldest checkpoint kept and of the steps since it.

    What the steps before it were given only its own sum tells: older ones are rotated away.
    """
    before = [other for other in saves if other.step < save.step][-SAVES_LIMIT:]
    for index, oldest in enumerate(before):
        given = remembered(told, ("sum", oldest.path), sum_in, oldest.path)
        if given is not None and given[2] == 0:
            known = {oldest.step: given[1], save.step: batch}
            for other in before[index + 1 :]:
                known[other.step] = remembered(
                    told, (rank, other.path), batch_in, other.path, rank
                )  # fmt: skip
            return (oldest.step, given[0]), parts_of(known)
    return None, []


def sum_in(path):
    ranks, problem = positions_in(path) or ({}, "")
    return given_in(ranks) if ranks and not problem else None


def remembered(told, key, read, *arguments):
    if key not in told:
        told[key] = read(*arguments)
    return told[key]


def parts_of(known):
    """[(steps, global batch before, global batch after)] from the batches by step."""
    parts, last, before = [], None, None
    for step, after in sorted(item for item in known.items() if item[1] is not None):
        if last is not None:
            parts.append((step - last, before, after))
        last, before = step, after
    return joined(parts)


def joined(parts):
    """Neighbours of one unchanged global batch made one."""
    done = []
    for steps, before, after in parts:
        if done and before == after and done[-1][1:] == (before, after):
            done[-1] = (done[-1][0] + steps, before, after)
        else:
            done.append((steps, before, after))
    return done


def batch_in(path, rank):
    """The global batch in one rank's position; None where it cannot be read or is not told."""
    try:
        batch = read_position(os.path.join(path, "loader", "rank-%05d.json" % rank))["global_batch"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return batch if is_count(batch) else None


def said_of_first(given, step, batch):
    """The samples where no checkpoint before tells which global batch the steps had."""
    product = "%d x %s" % (step, "{:,}".format(batch))
    if given == step * batch:
        return "{:,} samples = {}".format(given, product)
    return "{:,} samples and not {}: the global batch of earlier steps is not known".format(
        given, product
    )


def said_of_sum(given, parts, since, first=(0, 0)):
    """The samples beside those that the steps are given, where it is known how many those are."""
    if first[0] and first[1] == first[0] * parts[0][1]:
        # The steps before the first of these had its batch: one product for both.
        parts = joined([(first[0], parts[0][1], parts[0][1]), *parts])
        first = (0, 0)
    exact = first[1] + sum(steps * after for steps, _, after in parts)
    product = " + ".join("%d x %s" % (steps, "{:,}".format(after)) for steps, _, after in parts)
    if first[0]:
        product = "{:,} by step {} + {}".format(first[1], first[0], product)
    sentence = "{:,} samples {} {}".format(given, "=" if given == exact else "and not", product)
    sentence += " since step %d" % since if since else ""
    least = first[1] + sum(steps * min(before, after) for steps, before, after in parts)
    most = first[1] + sum(steps * max(before, after) for steps, before, after in parts)
    if given != exact and least != most:
        sentence += ", the global batch changed between checkpoints ({:,} to {:,} samples)".format(
            least, most
        )
    if least <= given <= most:
        return sentence
    return sentence + said_of_off((least if given < least else most) - given)


def said_of_off(off):
    """How many samples a restart repeats; below 0 those it leaves out."""
    return ": a restart from it %s {:,}".format(abs(off)) % ("repeats" if off > 0 else "skips")


def is_count(value):
    return type(value) is int and 0 <= value < 1 << 60


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
    try:
        names = sorted(os.listdir(folder))
    except OSError as exc:
        return {}, "loader: %s: %s" % (type(exc).__name__, exc)
    for name in names:
        match = NAME.match(name)
        if not match:
            continue
        try:
            row = read_position(os.path.join(folder, name))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as exc:
            return {}, "loader/%s: %s: %s" % (name, type(exc).__name__, exc)
        ranks[int(match.group(1))], of = row, max(of, row["of"])
    missing = [rank for rank in range(min(of, 1 << 20)) if rank not in ranks]
    if missing or not ranks:
        first = "loader/rank-%05d.json is missing" % (missing or [0])[0]
        return ranks, "%s (%d of %d loader states)" % (first, len(ranks), of)
    return ranks, ""


def read_position(path):
    with open(path) as stream:
        text = stream.read(SIZE_LIMIT + 1)
    if len(text) > SIZE_LIMIT:
        raise ValueError("more than %d characters" % SIZE_LIMIT)
    row = json.loads(text)
    for name in ("position", "of"):
        if type(row[name]) is not int or row[name] < 0:
            raise ValueError("%s is no count" % name)
    return row
