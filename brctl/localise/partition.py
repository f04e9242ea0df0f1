"""The next partition for the joint engine: the candidate with the most expected information."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brctl.localise.joint import CLASSES, PAIR_CLASSES, Joint
from brctl.localise.problem import Group

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAMPLES = 3000
_DEALS = 3
_END_GAME_PAIRS = 2000
_END_GAME_FROM = 1_000_000
_BLOCK = 4096
_TIE_BITS = 0.1
"""More and smaller groups must be this much better: they risk showing nothing at all."""
_LEAST_BITS = 0.002
"""A round expected to tell less is not run: what is left cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Hypotheses drawn from the posterior; node and scale use `low` and `size`.

    Attributes:
        kind: 0 node, 1 pair, 2 scale, 3 null.
        detect: Chance that a test with the cause active shows it.
    """

    kind: Ints
    low: Ints
    high: Ints
    size: Ints
    detect: Floats


@dataclass(frozen=True, slots=True)
class Standing:
    """Normalised probabilities of what the joint engine believes.

    Attributes:
        node: Classes by nodes by sizes.
        pair: Pair classes by surviving pairs, scaled by `pair_scale` only.
        pair_scale: What `pair` must be multiplied with.
        scale: Classes by sizes.
        null: That the full job failed by chance.
    """

    joint: Joint
    node: Floats
    pair: NDArray[np.float32]
    pair_scale: float
    scale: Floats
    null: float

    @property
    def by_node(self) -> Floats:
        return np.asarray(self.node.sum(axis=(0, 2)))

    @property
    def pairs(self) -> float:
        return float(self.pair.sum(dtype=np.float64)) * self.pair_scale

    def best_pair(self) -> tuple[tuple[int, int], float]:
        """The likeliest pair, as positions in the joint fleet; 0 while there are too many."""
        if not 0 < self.pair.shape[1] <= _END_GAME_FROM:
            return (0, 0), 0.0
        by_pair = self.pair.sum(axis=0)
        best = int(by_pair.argmax())
        ends = int(self.joint.low[best]), int(self.joint.high[best])
        return ends, float(by_pair[best]) * self.pair_scale

    def likely_size(self, node: int | None) -> int:
        """The likeliest smallest size at which a node's fault, or sheer scale, shows."""
        by_size = self.node[:, node].sum(axis=0) if node is not None else self.scale.sum(axis=0)
        return int(self.joint.sizes[int(by_size.argmax())])


def standing(joint: Joint) -> Standing:
    """Where the posterior stands."""
    top = max(joint.node.max(), joint.scale.max(), joint.null, joint.pair.max(initial=-1e9))
    node, scale = np.exp(joint.node - top), np.exp(joint.scale - top)
    pair = np.exp(joint.pair - np.float32(top))
    null = math.exp(joint.null - top)
    total = float(node.sum() + pair.sum(dtype=np.float64) + scale.sum() + null)
    return Standing(joint, node / total, pair, 1.0 / total, scale / total, null / total)


def next_partition(now: Standing, reps: int, cap: int | None, seed: int) -> list[Group]:
    """Groups, as positions in the joint fleet, that are expected to tell most."""
    rng = np.random.default_rng(seed)
    sample, mass = _draw(now, reps, rng)
    best: Ints | None = None
    best_information = _LEAST_BITS - _TIE_BITS
    for candidate in _candidates(now.joint, mass, cap, rng):
        information = _information(candidate, sample)
        if information > best_information + _TIE_BITS:
            best, best_information = candidate, information
    return _groups(best) if best is not None else []


def _groups(member: Ints) -> list[Group]:
    """Groups from the group number of each node; -1 sits out."""
    order = np.argsort(member, kind="stable")
    order = order[member[order] >= 0]
    cuts = np.nonzero(np.diff(member[order]))[0] + 1
    return [tuple(part.tolist()) for part in np.split(order, cuts) if len(part) >= 2]


def _draw(now: Standing, reps: int, rng: np.random.Generator) -> tuple[Sample, Floats]:
    """Draw hypotheses, and the probability mass each node carries."""
    joint, sizes = now.joint, len(now.joint.sizes)
    shares = np.array([now.node.sum(), now.pairs, now.scale.sum(), now.null])
    nodes, pairs, scales, nulls = rng.multinomial(_SAMPLES, shares / shares.sum()).tolist()
    node_class, node_size = np.divmod(_pick(now.node.ravel(), nodes, rng), len(joint.fleet) * sizes)
    pair_class, chosen = np.divmod(_pick(now.pair.ravel(), pairs, rng), max(1, now.pair.shape[1]))
    scale_class, which = np.divmod(_pick(now.scale.ravel(), scales, rng), sizes)
    kind = np.repeat(np.arange(4), [nodes, pairs, scales, nulls])
    low = _join(node_size // sizes, joint.low[chosen], scales + nulls)
    high = _join(np.zeros(nodes), joint.high[chosen], scales + nulls)
    smallest = [joint.sizes[node_size % sizes], np.full(pairs, 2), joint.sizes[which]]
    size = np.concatenate([*smallest, np.zeros(nulls, dtype=np.int64)])
    # One chance for all: a test must not look useful because it tells how often a fault shows.
    usual = _usual_detection(reps, [node_class, scale_class], pair_class)
    mass = now.by_node
    for ends in (joint.low[chosen], joint.high[chosen]):
        np.add.at(mass, ends, shares[1] / max(1, pairs) / 2)
    return Sample(kind, low, high, size, np.where(kind == 3, 0.0, usual)), mass


def _join(nodes: NDArray[np.generic], pairs: NDArray[np.generic], rest: int) -> Ints:
    parts = [nodes, pairs, np.zeros(rest)]
    return np.concatenate([part.astype(np.int64) for part in parts])


def _usual_detection(reps: int, others: list[Ints], pairs: Ints) -> float:
    """Mean chance that a round shows the cause, over the drawn hypotheses."""
    chances = [_detection(CLASSES, reps)[drawn] for drawn in others]
    chances.append(_detection(PAIR_CLASSES, reps)[pairs])
    every = np.concatenate(chances)
    return float(every.mean()) if len(every) else 0.0


def _detection(classes: tuple[tuple[float, bool, float], ...], reps: int) -> Floats:
    return np.array([rate if session else 1 - (1 - rate) ** reps for rate, session, _ in classes])


def _pick(weights: NDArray[np.floating], count: int, rng: np.random.Generator) -> Ints:
    """Positions drawn in proportion to their weights, by blocks: no running sum of millions."""
    if not count:
        return np.empty(0, dtype=np.int64)
    starts = np.arange(0, len(weights), _BLOCK)
    blocks = np.add.reduceat(weights, starts, dtype=np.float64)
    running = np.cumsum(blocks)
    drawn = np.searchsorted(running, rng.random(count) * running[-1])
    positions: list[Ints] = []
    for block, times in zip(*np.unique(drawn, return_counts=True), strict=True):
        first = int(starts[min(int(block), len(starts) - 1)])
        inside = np.cumsum(weights[first : first + _BLOCK], dtype=np.float64)
        found = np.searchsorted(inside, rng.random(int(times)) * inside[-1])
        positions.append(first + np.minimum(found, len(inside) - 1))
    return np.concatenate(positions).astype(np.int64)


def _candidates(
    joint: Joint, mass: Floats, cap: int | None, rng: np.random.Generator
) -> Iterator[Ints]:
    """Partitions worth a look, as group number per node; few and large groups first."""
    count = len(joint.fleet)
    most = min(count // 2, cap or count, 256)
    for number in sorted({m for step in (1, 2, 3, 4, 6) for m in _powers(step, most)}):
        for deal in range(_DEALS if number <= 8 else 1):
            yield _deal(joint, mass, number, rng, by_mass=deal == 0)
    # All but one part as one large group: the only test for what needs most of the fleet.
    for by_mass in (True, False):
        for parts in (3, 4, 8):
            if parts <= count // 2:
                yield (_deal(joint, mass, parts, rng, by_mass=by_mass) == 0).astype(np.int64)
    yield _end_game(joint, cap or count // 2)


def _powers(step: int, most: int) -> list[int]:
    values = []
    while step <= most:
        values.append(step)
        step *= 4
    return values


def _deal(
    joint: Joint, mass: Floats, number: int, rng: np.random.Generator, *, by_mass: bool
) -> Ints:
    """Deal nodes into equal groups so that suspicion and past company are spread evenly."""
    jitter = rng.random(len(mass))
    band = np.floor(np.log2(np.maximum(mass, 1e-12)) / 2.0)
    order = np.lexsort((jitter, -mass)) if by_mass else np.lexsort((jitter, joint.history, -band))
    turns = -(-len(order) // number)
    seats = np.tile(np.arange(number), (turns, 1))
    if by_mass:
        seats[1::2] = seats[1::2, ::-1]
    else:
        seats = rng.permuted(seats, axis=1)
    member = np.empty(len(mass), dtype=np.int64)
    member[order] = seats.ravel()[: len(order)]
    return member


def _end_game(joint: Joint, cap: int) -> Ints:
    """Each of the likeliest pairs alone, as long as they are disjoint."""
    member = np.full(len(joint.fleet), -1, dtype=np.int64)
    if not 0 < len(joint.low) <= _END_GAME_FROM:
        return member
    weight = joint.pair.max(axis=0)
    most = min(len(weight), _END_GAME_PAIRS)
    best = np.argpartition(-weight, most - 1)[:most]
    number = 0
    for index in best[np.argsort(-weight[best], kind="stable")].tolist():
        low, high = int(joint.low[index]), int(joint.high[index])
        if member[low] < 0 and member[high] < 0 and number < cap:
            member[[low, high]] = number
            number += 1
    return member


def _information(member: Ints, sample: Sample) -> float:
    """Bits a round with these groups is expected to give."""
    groups = int(member.max()) + 1
    if groups == 0:
        return 0.0
    size = np.append(np.bincount(member[member >= 0], minlength=groups), 0)
    here = member[sample.low]
    outcome = np.full(len(sample.kind), groups + 1)
    node = (sample.kind == 0) & (here >= 0) & (size[here] >= sample.size)
    outcome[node] = here[node]
    pair = (sample.kind == 1) & (here >= 0) & (here == member[sample.high])
    outcome[pair] = here[pair]
    large = groups - np.searchsorted(np.sort(size[:-1]), sample.size)
    # Sheer scale in one group looks like anything else in that group; in several it stands out.
    outcome[(sample.kind == 2) & (large == 1)] = int(size.argmax())
    outcome[(sample.kind == 2) & (large > 1)] = groups
    shown = np.where(outcome <= groups, sample.detect, 0.0)
    chance = np.bincount(outcome, shown, minlength=groups + 2) / len(shown)
    chance[-1] = 1.0 - chance[:-1].sum()
    return _entropy(chance) - float(_binary_entropy(shown).mean())


def _entropy(chance: Floats) -> float:
    positive = chance[chance > 1e-12]
    return float(-(positive * np.log2(positive)).sum())


def _binary_entropy(chance: Floats) -> Floats:
    inside = np.clip(chance, 1e-12, 1 - 1e-12)
    return np.asarray(-(inside * np.log2(inside) + (1 - inside) * np.log2(1 - inside)))
