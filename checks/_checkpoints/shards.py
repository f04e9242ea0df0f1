"""RUNS ON THE NODE. Which shards a checkpoint of one file a rank lacks; reads nothing.

Three things tell: names that carry indices must fill their grid, the job says how many ranks it
has, and the other checkpoints in the directory have the same names, unless the job was resized.
"""

import itertools

GRID_LIMIT = 1 << 20


def lacking_in_grid(pattern, names, write):
    """Names that the grid of indices in `names` lacks.

    `pattern` has one group an index; `write` makes a name of a tuple of indices.
    """
    found = set()
    for name in names:
        match = pattern.match(name)
        if match:
            found.add(tuple(int(text) for text in match.groups() if text is not None))
    if len({len(indices) for indices in found}) != 1:
        return []
    sizes = [max(column) + 1 for column in zip(*found)]  # noqa: B905 - Python 3.8 has no strict
    count = 1
    for size in sizes:
        count *= size
    if count > GRID_LIMIT:
        raise ValueError("indices of %d shards reach to %s" % (len(found), sizes))
    return [write(i) for i in itertools.product(*map(range, sizes)) if i not in found]


def lacking_beside(own, others):
    """Names that most of the other checkpoints have and this one lacks; none if one has no more."""
    kinds = {}
    for names in others:
        kinds[frozenset(names)] = kinds.get(frozenset(names), 0) + 1
    if not kinds or frozenset(own) in kinds:
        return []
    usual = max(sorted(kinds, key=sorted), key=lambda names: kinds[names])
    return sorted(usual - set(own)) if set(own) < usual else []
