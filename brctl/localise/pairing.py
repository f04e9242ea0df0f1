"""Disjoint groups for screening: partners from other leaves, new ones every round."""

from collections.abc import Sequence

import numpy as np

from brctl.localise.causes import Causes
from brctl.localise.problem import Group

_FEW = 9
"""In so small a fleet a group of three says too little; the odd node takes its turn later."""


def screen(causes: Causes, pool: Sequence[int], size: int, turn: int, seed: int) -> list[Group]:
    """Put every node of the pool into one group of at least `size`; leftovers join the last ones.

    Args:
        causes: Knows which leaf each node is under.
        pool: Nodes free for screening; fewer than `size` give no group.
        size: Smallest admissible group.
        turn: Round number; each turn meets other leaves and other partners.
        seed: Shuffles nodes inside their leaves.
    """
    if len(pool) < size:
        return []
    if size == 2:
        pairs, rest = _cross_leaf_pairs(causes, pool, turn, seed)
        return _add_leftovers(pairs, rest, idle_odd=len(pool) <= _FEW)
    order = _interleaved(causes, pool, turn, seed)
    whole = len(order) // size
    groups = [tuple(order[i::whole]) for i in range(whole)]
    return [tuple(sorted(group)) for group in groups]


def _add_leftovers(pairs: list[Group], rest: list[int], *, idle_odd: bool) -> list[Group]:
    """Pair what the tournament left; a last odd node joins a pair, or waits in a small fleet."""
    while len(rest) >= 2:
        pairs.append((rest.pop(), rest.pop()))
    if rest and pairs and not idle_odd:
        pairs[-1] = (*pairs[-1], rest.pop())
    return pairs


def _by_leaf(causes: Causes, pool: Sequence[int]) -> list[list[int]]:
    members: dict[int, list[int]] = {}
    for node in sorted(pool):
        leaf = int(causes.leaf_of[node]) if causes.leaf_count else node
        members.setdefault(leaf, []).append(node)
    return [members[leaf] for leaf in sorted(members)]


def _shuffled(items: list[int], seed: int) -> list[int]:
    return [items[i] for i in np.random.default_rng(seed).permutation(len(items))]


def _cross_leaf_pairs(
    causes: Causes, pool: Sequence[int], turn: int, seed: int
) -> tuple[list[Group], list[int]]:
    """A round robin between leaves: slot j of a leaf meets the leaf the circle method gives it.

    Each slot uses its own round of the tournament, so one screening round already covers as many
    pairs of leaves as a leaf has nodes.
    """
    leaves = [
        _shuffled(nodes, seed * 1_000_003 + turn * 8_191 + number)
        for number, nodes in enumerate(_by_leaf(causes, pool))
    ]
    depth = max(len(nodes) for nodes in leaves)
    pairs: list[Group] = []
    rest: list[int] = []
    for slot in range(depth):
        present = [nodes[slot] for nodes in leaves if slot < len(nodes)]
        matched, odd = _circle(present, turn * depth + slot, seed)
        pairs += matched
        rest += odd
    return pairs, rest


def _circle(players: list[int], turn: int, seed: int) -> tuple[list[Group], list[int]]:
    """One round of the circle method; an odd player sits out."""
    count = len(players) + len(players) % 2
    if count < 2:
        return [], players
    turns = count - 1
    # A fixed stride through the tournament keeps consecutive rounds far apart.
    start = (turn * _stride(turns) + seed) % turns
    ring = [(start + i) % turns for i in range(turns)]
    seats = [count - 1, *ring]
    pairs: list[Group] = []
    odd: list[int] = []
    for low, high in zip(seats[: count // 2], reversed(seats[count // 2 :]), strict=True):
        here = [players[seat] for seat in (low, high) if seat < len(players)]
        if len(here) == 2:
            pairs.append((min(here), max(here)))
        else:
            odd += here
    return pairs, odd


def _stride(turns: int) -> int:
    for stride in range(max(1, round(turns * 0.382)), turns + 1):
        if np.gcd(stride, turns) == 1:
            return stride
    return 1


def _interleaved(causes: Causes, pool: Sequence[int], turn: int, seed: int) -> list[int]:
    """The pool so that every `n`-th node, for any n, comes from many leaves."""
    leaves = [
        _shuffled(nodes, seed * 1_000_003 + turn * 8_191 + number)
        for number, nodes in enumerate(_by_leaf(causes, pool))
    ]
    order = _shuffled(list(range(len(leaves))), seed + turn)
    flat = [node for index in order for node in leaves[index]]
    return flat if causes.leaf_count else _shuffled(flat, seed * 31 + turn)
