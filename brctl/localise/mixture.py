"""Weigh classes of incidents against each other and against "nothing is visible"."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brctl.localise.factors import Posterior

Floats = NDArray[np.float64]
_LEAST = 1e-12
# Of incidents with a cause: it fails collectives, slows them, or there is one of each.
_SHARES = {(0, 0): 1.0, (1, 0): 0.70, (0, 1): 0.27, (1, 1): 0.03}
_FAILING_ONLY = {(0, 0): 1.0, (1, 0): 1.0}


@dataclass(frozen=True, slots=True)
class Belief:
    """What the tests support.

    Attributes:
        probability: Per cause, that it is broken.
        nothing: That nothing is visible in the tests so far.
        gain: New causes one more round is expected to show.
    """

    probability: Floats
    nothing: float
    gain: float


@dataclass(frozen=True, slots=True)
class Conditional:
    """What the tests say, given that at least one cause is present.

    Attributes:
        log_factor: Log odds by which the tests speak for "some cause" against "none".
        share: Weight of each class.
        present: Per class and cause, its probability.
        detect: Per class, chance that one more round sees a broken cause.
        quiet: Weight of each class when nothing is broken.
    """

    log_factor: float
    share: Floats
    present: Floats
    detect: Floats
    quiet: Floats

    def settle(self, nothing: float, convict_at: float) -> Belief:
        """The posterior, when nothing is visible with this probability."""
        probability = np.asarray(self.share @ self.present) * (1.0 - nothing)
        hidden = self.present @ (probability < convict_at)
        gain = (1.0 - nothing) * float((self.share * self.detect) @ hidden)
        return Belief(probability, nothing, gain)


@dataclass(frozen=True, slots=True)
class Model:
    """What the classes say before and without causes; rows are classes.

    Attributes:
        prior: Log odds of every cause before any test.
        weights: Log prior weight of each class.
        null: Log chance of all results when nothing is broken.
        detect: Chance that one more round sees a broken cause.
    """

    prior: Floats
    weights: Floats
    null: Floats
    detect: Floats


def condition(model: Model, posterior: Posterior) -> Conditional:
    """Weigh the classes, given at least one cause."""
    evidence = np.maximum(posterior.log_evidence_ratio, _LEAST)
    absent = np.logaddexp(0.0, model.prior).sum(axis=1)
    somebody = model.null + _log_expm1(evidence) - absent - np.log(-np.expm1(-absent))
    incident = model.weights + somebody
    quiet = model.weights + model.null
    top = max(incident.max(), quiet.max())
    share, nobody = np.exp(incident - top), np.exp(quiet - top)
    total, nobody_share = float(share.sum()), float(nobody.sum())
    log_factor = math.log(max(total, 1e-300)) - math.log(max(nobody_share, 1e-300))
    present = _given_somebody(posterior.log_odds, evidence)
    nobody /= max(nobody_share, 1e-300)
    return Conditional(log_factor, share / max(total, 1e-300), present, model.detect, nobody)


def settle_both(
    failing: Conditional, slow: Conditional | None, nothing: float, convict_at: float
) -> tuple[Belief, Belief | None]:
    """Both posteriors together: what slowness explains need not be a failure, and the reverse."""
    shares = _SHARES if slow is not None else _FAILING_ONLY
    scores = {}
    for (f, s), share in shares.items():
        prior = math.log1p(-nothing) + math.log(share) if f or s else math.log(nothing)
        scores[f, s] = prior + f * failing.log_factor + s * (slow.log_factor if slow else 0.0)
    top = max(scores.values())
    total = sum(math.exp(v - top) for v in scores.values())
    chance = {key: math.exp(v - top) / total for key, v in scores.items()}
    no_failing = sum(p for (f, _), p in chance.items() if not f)
    no_slow = sum(p for (_, s), p in chance.items() if not s)
    settled = slow.settle(no_slow, convict_at) if slow else None
    return failing.settle(no_failing, convict_at), settled


def _log_expm1(value: Floats) -> Floats:
    return np.where(value > 30.0, value, np.log(np.expm1(np.minimum(value, 30.0))))


def _given_somebody(log_odds: Floats, evidence: Floats) -> Floats:
    """Marginals per class, given that at least one cause is present."""
    chance = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700, 700)))
    return np.minimum(chance / -np.expm1(-evidence)[:, None], 1.0)
