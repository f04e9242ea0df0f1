"""Posterior of hidden binary causes under noisy-OR tests, for many latent classes at once.

Passing tests scale the odds of their causes and need no factor. Only tests that speak for a fault
are factors, so the graph stays small. Components that are trees, and small ones with cycles, are
solved exactly; the rest by damped belief propagation with the Bethe evidence.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_EXACT_CAUSES = 11
_SWEEPS = 40
_SETTLED = 1e-4
_CREDIBLE = -10.0
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Factor:
    """One test that speaks for a fault.

    Attributes:
        causes: Positions of the causes it exercises.
        likelihood: Per class and number of active causes; the last column stands for "or more".
    """

    causes: Ints
    likelihood: Floats


@dataclass(frozen=True, slots=True)
class Posterior:
    """Per class: log odds of every cause, and the log evidence against no cause at all."""

    log_odds: Floats
    log_evidence_ratio: Floats


def infer(prior_log_odds: Floats, factors: list[Factor]) -> Posterior:
    """Posterior log odds and log(Z / Z with every cause absent), both per class.

    Args:
        prior_log_odds: Classes by causes, with the passing tests already in.
        factors: Tests that speak for a fault.
    """
    factors = [_pruned(factor, prior_log_odds) for factor in factors]
    log_odds = prior_log_odds.copy()
    touched = np.zeros(prior_log_odds.shape[1], dtype=bool)
    evidence = np.zeros(prior_log_odds.shape[0])
    for causes, members in _components(factors):
        touched[causes] = True
        part = [
            Factor(np.searchsorted(causes, factor.causes), factor.likelihood) for factor in members
        ]
        local = prior_log_odds[:, causes]
        solve = _enumerate if _is_small_cycle(causes, part) else _propagate
        log_odds[:, causes], gained = solve(local, part)
        evidence += gained
    evidence += _softplus(prior_log_odds[:, ~touched]).sum(axis=1)
    return Posterior(log_odds, evidence)


def _pruned(factor: Factor, prior_log_odds: Floats) -> Factor:
    """Leave out causes that this test could not make credible in any class.

    Uplinks that many clean tests crossed would otherwise tie all failures into one loopy graph.
    """
    table = np.maximum(factor.likelihood, _TINY)
    most = np.log(table.max(axis=1)) - np.log(table[:, 0])
    credible = (prior_log_odds[:, factor.causes] + most[:, None]).max(axis=0) > _CREDIBLE
    causes = factor.causes[credible]
    return Factor(causes, factor.likelihood[:, : len(causes) + 1])


def _softplus(value: Floats) -> Floats:
    return np.logaddexp(0.0, value)


def _components(factors: list[Factor]) -> list[tuple[Ints, list[Factor]]]:
    """Factors that share causes, together; all acyclic ones as one component, for speed."""
    owner: dict[int, int] = {}
    parent = list(range(len(factors)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for number, factor in enumerate(factors):
        for cause in factor.causes.tolist():
            parent[root(number)] = root(owner.setdefault(cause, number))
    grouped: dict[int, list[Factor]] = {}
    for number, factor in enumerate(factors):
        if not len(factor.causes):
            continue
        grouped.setdefault(root(number), []).append(factor)
    separate: list[tuple[Ints, list[Factor]]] = []
    together: list[Factor] = []
    for members in grouped.values():
        causes = np.unique(np.concatenate([factor.causes for factor in members]))
        if _is_small_cycle(causes, members):
            separate.append((causes, members))
        else:
            together += members
    if together:
        causes = np.unique(np.concatenate([factor.causes for factor in together]))
        separate.append((causes, together))
    return separate


def _is_small_cycle(causes: Ints, factors: list[Factor]) -> bool:
    edges = sum(len(factor.causes) for factor in factors)
    return len(causes) <= _EXACT_CAUSES and edges >= len(causes) + len(factors)


def _enumerate(prior: Floats, factors: list[Factor]) -> tuple[Floats, Floats]:
    """Exact answer by visiting every combination of causes."""
    count = prior.shape[1]
    combos = (np.arange(1 << count)[:, None] >> np.arange(count)) & 1
    score = prior @ combos.T.astype(np.float64)
    for factor in factors:
        active = combos[:, factor.causes].sum(axis=1)
        table = np.log(np.maximum(factor.likelihood, _TINY))
        score += table[:, np.minimum(active, table.shape[1] - 1)]
    none = score[:, 0].copy()
    top = score.max(axis=1, keepdims=True)
    weight = np.exp(score - top)
    total = weight.sum(axis=1)
    present = weight @ combos
    absent = np.maximum(total[:, None] - present, 0.0)
    absent = np.maximum(weight @ (1 - combos), _TINY) if np.any(absent == 0.0) else absent
    log_odds = np.log(np.maximum(present, _TINY)) - np.log(np.maximum(absent, _TINY))
    return log_odds, np.log(total) + top[:, 0] - none


@dataclass(slots=True)
class _Bucket:
    """Factors of one size: causes (factors, size) and likelihoods (classes, factors, counts)."""

    causes: Ints
    likelihood: Floats
    message: Floats


def _buckets(classes: int, factors: list[Factor]) -> list[_Bucket]:
    by_size: dict[tuple[int, int], list[Factor]] = {}
    for factor in factors:
        key = (len(factor.causes), factor.likelihood.shape[1])
        by_size.setdefault(key, []).append(factor)
    return [
        _Bucket(
            np.stack([f.causes for f in group]),
            np.stack([f.likelihood for f in group], axis=1),
            np.zeros((classes, len(group), size)),
        )
        for (size, _), group in by_size.items()
    ]


def _propagate(prior: Floats, factors: list[Factor]) -> tuple[Floats, Floats]:
    """Belief propagation; exact on trees, damped where it does not settle."""
    buckets = _buckets(prior.shape[0], factors)
    belief = prior.copy()
    for sweep in range(_SWEEPS):
        change = 0.0
        for bucket in buckets:
            incoming = belief[:, bucket.causes] - bucket.message
            fresh = _messages(_logistic(incoming), bucket.likelihood)
            if sweep >= 6:
                fresh = 0.5 * fresh + 0.5 * bucket.message
            change = max(change, float(np.abs(fresh - bucket.message).max()))
            bucket.message = fresh
        belief = _gather(prior, buckets)
        if change < _SETTLED:
            break
    return belief, _bethe(prior, belief, buckets)


def _logistic(value: Floats) -> Floats:
    chance: Floats = 1.0 / (1.0 + np.exp(-np.clip(value, -700.0, 700.0)))
    return chance


def _gather(prior: Floats, buckets: list[_Bucket]) -> Floats:
    classes, count = prior.shape
    belief = prior.copy()
    offset = np.arange(classes)[:, None] * count
    for bucket in buckets:
        flat = (offset + bucket.causes.ravel()[None, :]).ravel()
        added = np.bincount(flat, bucket.message.reshape(-1), minlength=classes * count)
        belief += added.reshape(classes, count)
    return belief


def _messages(probability: Floats, likelihood: Floats) -> Floats:
    """Log ratio each factor sends to each of its causes, given what the others say."""
    classes, number, size = probability.shape
    depth = likelihood.shape[2]
    ahead = np.empty((size + 1, classes, number, depth))
    ahead[size] = likelihood
    for position in range(size - 1, 0, -1):
        ahead[position] = _absorb(ahead[position + 1], probability[:, :, position])
    behind = np.zeros((classes, number, depth))
    behind[:, :, 0] = 1.0
    ratio = np.empty_like(probability)
    for position in range(size):
        value = ahead[position + 1]
        absent = np.einsum("cfn,cfn->cf", behind, value)
        present = np.einsum("cfn,cfn->cf", behind, _one_more(value))
        ratio[:, :, position] = np.log(np.maximum(present, _TINY)) - np.log(
            np.maximum(absent, _TINY)
        )
        behind = _convolve(behind, probability[:, :, position])
    return ratio


def _one_more(value: Floats) -> Floats:
    return np.concatenate([value[:, :, 1:], value[:, :, -1:]], axis=2)


def _absorb(value: Floats, chance: Floats) -> Floats:
    chance = chance[:, :, None]
    expected: Floats = (1.0 - chance) * value + chance * _one_more(value)
    return expected


def _convolve(behind: Floats, chance: Floats) -> Floats:
    chance = chance[:, :, None]
    moved = np.concatenate([np.zeros_like(behind[:, :, :1]), behind[:, :, :-1]], axis=2)
    moved[:, :, -1] += behind[:, :, -1]
    spread: Floats = (1.0 - chance) * behind + chance * moved
    return spread


def _bethe(prior: Floats, belief: Floats, buckets: list[_Bucket]) -> Floats:
    """Log of the Bethe evidence, against the configuration without any cause."""
    evidence: Floats = _softplus(belief).sum(axis=1)
    for bucket in buckets:
        incoming = belief[:, bucket.causes] - bucket.message
        probability = _logistic(incoming)
        value = bucket.likelihood
        for position in range(bucket.causes.shape[1]):
            value = _absorb(value, probability[:, :, position])
        none = np.log(np.maximum(bucket.likelihood[:, :, 0], _TINY))
        factor = np.log(np.maximum(value[:, :, 0], _TINY)) - none
        chance = np.logaddexp(
            np.log1p(-np.minimum(probability, 1.0 - 1e-16)),
            np.log(np.maximum(probability, _TINY)) + bucket.message,
        )
        evidence = evidence + factor.sum(axis=1) - chance.sum(axis=(1, 2))
    return evidence
