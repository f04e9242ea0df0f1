"""The next partition for the joint engine: the candidate with the most expected information."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brctl.localise.joint import CLASSES, Joint
from brctl.localise.problem import Group

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAMPLES = 3000
_DEALS = 3
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
    """Probabilities of what the joint engine believes, summed over its classes."""

    node: Floats
    best_pair: tuple[int, int]
    best_pair_probability: float
    pair: float
    scale: float
    null: float


def standing(joint: Joint) -> Standing:
    """Where the posterior stands."""
    node, pair, scale, null = _weights(joint)
    by_pair = pair.sum(axis=0)
    best = int(by_pair.argmax()) if len(by_pair) else -1
    ends = (int(joint.low[best]), int(joint.high[best])) if best >= 0 else (0, 0)
    return Standing(
        node.sum(axis=(0, 2)),
        ends,
        float(by_pair[best]) if best >= 0 else 0.0,
        float(by_pair.sum()),
        float(scale.sum()),
        null,
    )


def likely_size(joint: Joint, node: int | None) -> int:
    """The most likely smallest size at which a node's fault, or sheer scale, shows."""
    weights, _, scale, _ = _weights(joint)
    by_size = weights[:, node].sum(axis=0) if node is not None else scale.sum(axis=0)
    return int(joint.sizes[int(by_size.argmax())])


def _weights(joint: Joint) -> tuple[Floats, NDArray[np.float32], Floats, float]:
    top = max(joint.node.max(), joint.scale.max(), joint.null, joint.pair.max(initial=-1e9))
    node, scale = np.exp(joint.node - top), np.exp(joint.scale - top)
    pair = np.exp(joint.pair - np.float32(top))
    null = math.exp(joint.null - top)
    total = node.sum() + float(pair.sum(dtype=np.float64)) + scale.sum() + null
    pair /= np.float32(total)
    return node / total, pair, scale / total, null / total


def next_partition(joint: Joint, reps: int, cap: int | None, seed: int) -> list[Group]:
    """Groups, as positions in the joint fleet, that are expected to tell most."""
    rng = np.random.default_rng(seed)
    sample, mass = _draw(joint, reps, rng)
    best: list[Group] = []
    best_information = _LEAST_BITS - _TIE_BITS
    for candidate in _candidates(joint, sample, mass, cap, rng):
        information = _information(candidate, sample, len(joint.fleet))
        if information > best_information + _TIE_BITS:
            best, best_information = candidate, information
    return best


def _draw(joint: Joint, reps: int, rng: np.random.Generator) -> tuple[Sample, Floats]:
    """Draw hypotheses, and the probability mass each node carries."""
    node, pair, scale, null = _weights(joint)
    detect = np.array([r if session else 1 - (1 - r) ** reps for r, session, _ in CLASSES])
    shares = np.array([node.sum(), float(pair.sum(dtype=np.float64)), scale.sum(), null])
    counts = rng.multinomial(_SAMPLES, shares / shares.sum())
    sizes = len(joint.sizes)
    cls_n, rest = _pick(node.ravel(), counts[0], len(joint.fleet) * sizes, rng)
    cls_p, chosen = _pick(pair.ravel(), counts[1], pair.shape[1], rng)
    cls_s, which = _pick(scale.ravel(), counts[2], sizes, rng)
    kind = np.repeat(np.arange(4), counts)
    zeros = np.zeros(counts[2] + counts[3], dtype=np.int64)
    low = np.concatenate([rest // sizes, joint.low[chosen], zeros]).astype(np.int64)
    high = np.concatenate([np.zeros(counts[0], np.int64), joint.high[chosen], zeros])
    size = np.concatenate(
        [
            joint.sizes[rest % sizes],
            np.full(counts[1], 2),
            joint.sizes[which],
            np.zeros(counts[3], np.int64),
        ]
    )
    # One chance for all: a test must not look useful because it tells how often a fault shows.
    rates = np.concatenate([detect[cls_n], detect[cls_p], detect[cls_s]])
    usual = float(rates.mean()) if len(rates) else 0.0
    seen = np.where(kind == 3, 0.0, usual)
    mass = node.sum(axis=(0, 2))
    np.add.at(mass, joint.low[chosen], shares[1] / max(1, counts[1]) / 2)
    np.add.at(mass, joint.high[chosen], shares[1] / max(1, counts[1]) / 2)
    return Sample(kind, low, high.astype(np.int64), size.astype(np.int64), seen), mass


def _pick(
    weights: NDArray[np.floating], count: int, width: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    if not count:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty
    running = np.cumsum(weights, dtype=np.float64)
    index = np.searchsorted(running, rng.random(count) * running[-1])
    index = np.minimum(index, len(running) - 1).astype(np.int64)
    return index // width, index % width


def _candidates(
    joint: Joint, sample: Sample, mass: Floats, cap: int | None, rng: np.random.Generator
) -> list[list[Group]]:
    count = len(joint.fleet)
    most = min(count // 2, cap or count, 256)
    numbers = sorted({m for step in (1, 2, 3, 4, 6) for m in _powers(step, most)})
    found = [
        _deal(joint, mass, number, rng, by_mass=deal == 0)
        for number in numbers
        for deal in range(_DEALS if number <= 8 else 1)
    ]
    found += [_merged(_deal(joint, mass, parts, rng, by_mass=True)) for parts in (3, 4, 8)]
    found += [_merged(_deal(joint, mass, parts, rng, by_mass=False)) for parts in (3, 4, 8)]
    return [*found, _end_game(joint, sample, cap or count // 2)]


def _merged(groups: list[Group]) -> list[Group]:
    """All but one part as one large group: the only test for what needs most of the fleet."""
    if len(groups) < 2:
        return groups
    return [tuple(sorted(node for group in groups[:-1] for node in group)), groups[-1]]


def _powers(step: int, most: int) -> list[int]:
    values = []
    while step <= most:
        values.append(step)
        step *= 4
    return values


def _deal(
    joint: Joint, mass: Floats, number: int, rng: np.random.Generator, *, by_mass: bool
) -> list[Group]:
    """Deal nodes into equal groups so that suspicion and past company are spread evenly."""
    jitter = rng.random(len(mass))
    band = np.floor(np.log2(np.maximum(mass, 1e-12)) / 2.0)
    order = np.lexsort((jitter, -mass)) if by_mass else np.lexsort((jitter, joint.history, -band))
    groups: list[list[int]] = [[] for _ in range(number)]
    for start in range(0, len(order), number):
        chunk = order[start : start + number].tolist()
        seats = rng.permutation(number).tolist() if not by_mass else _snake(start, number)
        for node, seat in zip(chunk, seats, strict=False):
            groups[seat].append(node)
    return [tuple(sorted(group)) for group in groups if len(group) >= 2]


def _snake(start: int, number: int) -> list[int]:
    forward = list(range(number))
    return forward if (start // number) % 2 == 0 else forward[::-1]


def _end_game(joint: Joint, sample: Sample, cap: int) -> list[Group]:
    """Each of the likeliest pairs alone, as long as they are disjoint."""
    pairs = np.column_stack([sample.low, sample.high])[sample.kind == 1]
    if not len(pairs):
        return []
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    used: set[int] = set()
    groups: list[Group] = []
    for low, high in distinct[np.argsort(-counts, kind="stable")].tolist():
        if low not in used and high not in used and len(groups) < cap:
            groups.append((low, high))
            used |= {low, high}
    return groups


def _information(groups: list[Group], sample: Sample, count: int) -> float:
    """Bits a round with these groups is expected to give."""
    if not groups:
        return 0.0
    member = np.full(count, -1, dtype=np.int64)
    size = np.zeros(len(groups) + 1, dtype=np.int64)
    for number, group in enumerate(groups):
        member[list(group)] = number
        size[number] = len(group)
    here = member[sample.low]
    outcome = np.full(len(sample.kind), len(groups) + 1)
    node = (sample.kind == 0) & (here >= 0) & (size[here] >= sample.size)
    outcome[node] = here[node]
    pair = (sample.kind == 1) & (here >= 0) & (here == member[sample.high])
    outcome[pair] = here[pair]
    outcome[(sample.kind == 2) & (size.max() >= sample.size)] = len(groups)
    shown = np.where(outcome <= len(groups), sample.detect, 0.0)
    chance = np.bincount(outcome, shown, minlength=len(groups) + 2) / len(shown)
    chance[-1] = 1.0 - chance[:-1].sum()
    return _entropy(chance) - float(_binary_entropy(shown).mean())


def _entropy(chance: Floats) -> float:
    positive = chance[chance > 1e-12]
    return float(-(positive * np.log2(positive)).sum())


def _binary_entropy(chance: Floats) -> Floats:
    inside = np.clip(chance, 1e-12, 1 - 1e-12)
    return np.asarray(-(inside * np.log2(inside) + (1 - inside) * np.log2(1 - inside)))
