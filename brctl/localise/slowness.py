"""Which causes slow collectives down: the same posterior with bandwidths instead of counts.

A group is as slow as its slowest member, so one Gaussian per depth of slowness and a noisy-OR
suffice. The width comes from the clean majority; a heavy tail stands for passing congestion.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from brctl.localise.beliefs import prior_log_odds
from brctl.localise.factors import Factor, infer
from brctl.localise.ledger import Ledger
from brctl.localise.mixture import Conditional, Model, condition
from brctl.localise.problem import SearchProblem

Floats = NDArray[np.float64]

# Log ratios of 10, 15, 25, 50 and 80 % loss.
DEPTHS = ((0.105, 0.3), (0.16, 0.2), (0.29, 0.2), (0.69, 0.2), (1.6, 0.1))
EXPECTED = ((0.2, 0.75), (2.0, 0.2), (8.0, 0.05))
CONGESTION = ((0.002, 0.5), (0.02, 0.5))
_TAIL_DENSITY = 1.0 / 2.5
_PRIOR_SIGMA, _PRIOR_TESTS, _LEAST_SIGMA = 0.03, 4.0, 0.005


@dataclass(frozen=True, slots=True)
class SlownessLatent:
    """One combination of how slow, how many, and how often congestion looks the same."""

    depth: float
    expected: float
    congestion: float
    log_weight: float


LATENTS = tuple(
    SlownessLatent(d, k, c, math.log(wd * wk * wc))
    for (d, wd), (k, wk), (c, wc) in product(DEPTHS, EXPECTED, CONGESTION)
)


def believe_slow(problem: SearchProblem, ledger: Ledger) -> Conditional | None:
    """The posterior over slow causes; None when no test gave a bandwidth."""
    if not ledger.speeds:
        return None
    base = {k: prior_log_odds(problem, ledger, k) for k, _ in EXPECTED}
    prior = np.stack([base[latent.expected] for latent in LATENTS])
    log_ratio = np.array([speed.log_ratio for speed in ledger.speeds])
    sigma = _sigma(log_ratio)
    without, slowed = _densities(log_ratio, sigma)
    for_slow = np.log(slowed) - np.log(without)
    strong = np.nonzero((for_slow > 0.0).any(axis=0))[0]
    odds = prior + _weak_evidence(ledger, for_slow, strong)
    factors = [
        Factor(ledger.speeds[i].causes, np.column_stack([without[:, i], slowed[:, i]]))
        for i in strong
    ]
    weights = np.array([latent.log_weight for latent in LATENTS])
    detect = np.array([min(0.95, latent.depth / (2 * sigma) / 2) for latent in LATENTS])
    model = Model(prior, weights, np.log(without).sum(axis=1), detect)
    return condition(model, infer(odds, factors))


def _sigma(log_ratio: Floats) -> float:
    """Spread of the clean majority, from the median absolute deviation, kept off zero."""
    spread = 1.4826 * float(np.median(np.abs(log_ratio - np.median(log_ratio))))
    count = len(log_ratio)
    pooled = (count * spread**2 + _PRIOR_TESTS * _PRIOR_SIGMA**2) / (count + _PRIOR_TESTS)
    return max(math.sqrt(pooled), _LEAST_SIGMA)


def _densities(log_ratio: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Density of each test, per class, without and with a slow cause in the group."""
    without = np.empty((len(LATENTS), len(log_ratio)))
    slowed = np.empty_like(without)
    for row, latent in enumerate(LATENTS):
        tail = latent.congestion * _TAIL_DENSITY
        wide = math.hypot(sigma, 0.15 * latent.depth)
        without[row] = (1 - latent.congestion) * _normal(log_ratio, 0.0, sigma) + tail
        slowed[row] = (1 - latent.congestion) * _normal(log_ratio, -latent.depth, wide) + tail
    return without, slowed


def _normal(value: Floats, mean: float, sigma: float) -> Floats:
    density: Floats = np.exp(-0.5 * ((value - mean) / sigma) ** 2) / (sigma * 2.5066282746)
    return density


def _weak_evidence(ledger: Ledger, for_slow: Floats, strong: NDArray[np.int64]) -> Floats:
    """Tests that speak for a healthy group, as additions to the log odds of its causes."""
    weak = np.setdiff1d(np.arange(len(ledger.speeds)), strong)
    added = np.zeros((len(LATENTS), ledger.causes.count))
    if not len(weak):
        return added
    causes = np.concatenate([ledger.speeds[i].causes for i in weak])
    which = np.repeat(weak, [len(ledger.speeds[i].causes) for i in weak])
    for row in range(len(LATENTS)):
        added[row] = np.bincount(causes, for_slow[row, which], minlength=added.shape[1])
    return added
