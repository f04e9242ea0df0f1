"""Which causes fail collectives: the posterior over nodes, leaf uplinks and leaf pairs.

Latent for the whole incident: how often a bad cause fails a repetition, how many causes to expect,
how often a healthy repetition fails, and whether repetitions inside one set-up fail together.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from brctl.localise.factors import Factor, infer
from brctl.localise.ledger import Failure, Ledger
from brctl.localise.mixture import Conditional, Model, condition
from brctl.localise.problem import SearchProblem

Floats = NDArray[np.float64]

# Weights are a prior, not measurements: about half of what fails collectives fails every time;
# faults come alone in four of five incidents; about one in ten sits in the network above the NIC.
FAIL_RATE = ((0.995, 0.45), (0.8, 0.17), (0.5, 0.15), (0.3, 0.15), (0.15, 0.08))
EXPECTED = ((0.2, 0.75), (2.0, 0.2), (8.0, 0.05))
NOISE = ((1e-5, 0.35), (1e-3, 0.3), (1e-2, 0.35))
SESSION = ((False, 0.9), (True, 0.1))
UPLINK_SHARE = 0.05
PATH_SHARE = 0.05
# In a bad session nearly every repetition fails; one that passes must not rule the session out.
_IN_BAD_SESSION = 0.95
_DEPTH = 6
_EXCLUDED = -60.0
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True)
class FailureLatent:
    """One combination of the incident's hidden properties."""

    fail_rate: float
    expected: float
    noise: float
    session: bool
    log_weight: float


LATENTS = tuple(
    FailureLatent(p, k, q, session, math.log(wp * wk * wq * ws))
    for (p, wp), (k, wk), (q, wq), (session, ws) in product(FAIL_RATE, EXPECTED, NOISE, SESSION)
)


def prior_log_odds(problem: SearchProblem, ledger: Ledger, expected: float) -> Floats:
    """Log odds of every cause before any test, when this many faults are expected."""
    causes = ledger.causes
    leaves = causes.leaf_count
    paths = causes.count - causes.node_count - leaves
    shares = np.empty(causes.count)
    network = UPLINK_SHARE + PATH_SHARE if leaves else 0.0
    shares[: causes.node_count] = (1.0 - network) / causes.node_count
    if leaves:
        shares[causes.node_count : causes.node_count + leaves] = UPLINK_SHARE / leaves
        shares[causes.node_count + leaves :] = PATH_SHARE / paths
    chance = np.minimum(expected * shares, 0.3)
    log_odds = np.log(chance) - np.log1p(-chance)
    for position, name in enumerate(problem.nodes):
        if name in problem.prior:
            log_odds[position] += math.log(max(problem.prior[name], 1e-9))
    return np.asarray(log_odds)


ALL_CLASSES = tuple(range(len(LATENTS)))


def live_classes(belief: Conditional, classes: tuple[int, ...]) -> tuple[int, ...]:
    """Classes that still weigh anything, with or without a cause; the others are not revived."""
    weight = np.maximum(belief.share, belief.quiet)
    return tuple(c for c, w in zip(classes, weight, strict=True) if w > _NEGLIGIBLE)


def same_noise(classes: tuple[int, ...]) -> tuple[int, ...]:
    """All classes with the noise of these: another fault's rate, the same fleet."""
    noises = {(LATENTS[c].noise, LATENTS[c].session) for c in classes}
    return tuple(c for c in ALL_CLASSES if (LATENTS[c].noise, LATENTS[c].session) in noises)


def believe(
    problem: SearchProblem,
    ledger: Ledger,
    convicted: frozenset[int] = frozenset(),
    classes: tuple[int, ...] = ALL_CLASSES,
) -> Conditional:
    """The posterior after all tests in the ledger.

    With convicted causes it is the posterior of the rest: their failures are explained, and what
    is left may fail at another rate, which one incident-wide rate would hide.
    """
    base = {k: prior_log_odds(problem, ledger, k) for k, _ in EXPECTED}
    latents = [LATENTS[c] for c in classes]
    prior = np.stack([base[latent.expected] for latent in latents])
    prior[:, sorted(convicted)] = _EXCLUDED
    odds = prior + _clean_evidence(ledger, latents)
    failures = [f for f in ledger.failures if not convicted.intersection(f.causes.tolist())]
    factors = [_factor(failure, classes) for failure in failures]
    posterior = infer(odds, factors)
    detect = np.array([_detection(latent, problem.reps) for latent in latents])
    weights = np.array([latent.log_weight for latent in latents])
    null = _null_evidence(ledger, failures)[list(classes)]
    model = Model(prior, weights, null, detect)
    return condition(model, posterior)


def _clean_evidence(ledger: Ledger, latents: list[FailureLatent]) -> Floats:
    """What the passing tests add to the log odds, per class and cause."""
    rows = [
        (ledger.clean_sessions if latent.session else ledger.clean_reps)
        * math.log1p(-latent.fail_rate)
        for latent in latents
    ]
    return np.stack(rows)


def _factor(failure: Failure, classes: tuple[int, ...]) -> Factor:
    depth = min(len(failure.causes), _DEPTH) + 1
    table = likelihoods(failure.reps, failure.failed)[list(classes), :depth]
    return Factor(failure.causes, table)


@lru_cache(maxsize=1024)
def likelihoods(reps: int, failed: int) -> Floats:
    """Per class, the chance of this many failed repetitions for 0, 1, 2, ... active causes."""
    rows = [_likelihood(latent, reps, failed, _DEPTH + 1) for latent in LATENTS]
    table = np.stack(rows)
    table.flags.writeable = False
    return table


def _likelihood(latent: FailureLatent, reps: int, failed: int, depth: int) -> Floats:
    """Chance of this count for 0, 1, 2, ... active causes in the group."""
    active = np.arange(depth, dtype=np.float64)
    fails: Floats = 1.0 - (1.0 - latent.noise) * (1.0 - latent.fail_rate) ** active
    if not latent.session:
        return _binomial(reps, failed, fails)
    good = _binomial(reps, failed, np.array([latent.noise]))[0]
    bad = _binomial(reps, failed, np.array([_IN_BAD_SESSION]))[0]
    mixed: Floats = fails * bad + (1.0 - fails) * good
    return mixed


def _binomial(reps: int, failed: int, chance: Floats) -> Floats:
    combinations = float(math.comb(reps, failed))
    result: Floats = combinations * chance**failed * (1.0 - chance) ** (reps - failed)
    return result


def _detection(latent: FailureLatent, reps: int) -> float:
    """Chance that one more round sees a bad cause."""
    if latent.session:
        return latent.fail_rate
    return float(1.0 - (1.0 - latent.fail_rate) ** reps)


def _null_evidence(ledger: Ledger, failures: list[Failure]) -> Floats:
    """Log chance of all results when nothing is broken, per class."""
    total = np.empty(len(LATENTS))
    for row, latent in enumerate(LATENTS):
        quiet = math.log1p(-latent.noise)
        total[row] = ledger.passed_reps * quiet
        if latent.session:
            total[row] += ledger.passed_sessions * quiet
    counts = Counter((failure.reps, failure.failed) for failure in failures)
    for (reps, failed), times in counts.items():
        total += times * np.log(np.maximum(likelihoods(reps, failed)[:, 0], 1e-300))
    return total
