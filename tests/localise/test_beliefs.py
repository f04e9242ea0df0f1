"""The decoder against brute force: every combination of causes, every class, summed exactly."""

import itertools
import math
import random

import numpy as np
import pytest

from brctl.localise.beliefs import LATENTS, believe, likelihoods, prior_log_odds
from brctl.localise.causes import index_causes
from brctl.localise.ledger import Ledger
from brctl.localise.mixture import settle_both
from brctl.localise.problem import GroupResult, Round, RoundPlan, SearchProblem, Stage

REPS = 4


def problem_of(count: int, leaves: int = 0) -> SearchProblem:
    names = tuple(f"n{i}" for i in range(count))
    cabling = tuple(f"l{i % leaves}" for i in range(count)) if leaves else ()
    return SearchProblem(names, cabling, reps=REPS)


def history(problem: SearchProblem, seed: int, rounds: int, *, tree: bool) -> Ledger:
    """Random pair rounds with one bad node and stray failures."""
    rng = random.Random(seed)
    count = len(problem.nodes)
    bad = rng.randrange(count)
    ledger = Ledger(index_causes(problem))
    met: set[int] = set()
    for number in range(1, rounds + 1):
        order = rng.sample(range(count), count)
        groups = [(order[i], order[i + 1]) for i in range(0, count - 1, 2)]
        results = []
        for group in groups:
            chance = 0.8 if bad in group else 0.1
            failed = sum(rng.random() < chance for _ in range(REPS))
            if tree and failed and met & set(group):
                failed = 0
            met |= set(group) if failed else set()
            results.append(GroupResult(REPS, failed))
        ledger.record(Round(RoundPlan(number, Stage.SCREEN, REPS, tuple(groups)), tuple(results)))
    return ledger


def brute_force(problem: SearchProblem, ledger: Ledger) -> tuple[np.ndarray, float]:
    """Marginals and P(nothing) by visiting every combination of causes in every class."""
    count = ledger.causes.count
    somebody, weighted, nobody = 0.0, np.zeros(count), 0.0
    for row, latent in enumerate(LATENTS):
        odds = prior_log_odds(problem, ledger, latent.expected)
        chance = 1.0 / (1.0 + np.exp(-odds))
        clean = ledger.clean_sessions if latent.session else ledger.clean_reps
        null = ledger.passed_reps * math.log1p(-latent.noise)
        null += ledger.passed_sessions * math.log1p(-latent.noise) if latent.session else 0.0
        empty_prior, total, marginal = 0.0, 0.0, np.zeros(count)
        empty = 0.0
        for combo in itertools.product((0, 1), repeat=count):
            on = np.array(combo, dtype=float)
            score = math.exp(null + float(on @ clean) * math.log1p(-latent.fail_rate))
            for failure in ledger.failures:
                table = likelihoods(failure.reps, failure.failed)[row]
                score *= table[min(int(on[failure.causes].sum()), len(table) - 1)]
            prior = float(np.prod(np.where(on > 0, chance, 1 - chance)))
            if not any(combo):
                empty_prior, empty = prior, score
                continue
            total += prior * score
            marginal += prior * score * on
        weight = math.exp(latent.log_weight)
        somebody += weight * total / (1 - empty_prior)
        weighted += weight * marginal / (1 - empty_prior)
        nobody += weight * empty
    p_none, p_some = problem.nothing_wrong, 1.0 - problem.nothing_wrong
    evidence = p_none * nobody + p_some * somebody
    return p_some * weighted / evidence, p_none * nobody / evidence


def settled(problem: SearchProblem, ledger: Ledger) -> tuple[np.ndarray, float]:
    belief, _ = settle_both(believe(problem, ledger), None, problem.nothing_wrong, 0.99)
    # The two weights of "some cause" in the mixture; without bandwidths only one is left.
    return belief.probability, belief.nothing


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("seed", range(6))
def test_trees_of_failures_are_decoded_exactly(count: int, seed: int) -> None:
    """Where failing tests form no cycle, the posterior is the brute-force one."""
    problem = problem_of(count)
    ledger = history(problem, seed, rounds=3, tree=True)
    expected, nothing = brute_force(problem, ledger)
    probability, quiet = settled(problem, ledger)
    assert np.abs(probability - expected).max() < 1e-3
    assert abs(quiet - nothing) < 1e-3


@pytest.mark.parametrize("count", [4, 6, 8])
@pytest.mark.parametrize("seed", range(6))
def test_small_cycles_of_failures_are_decoded_exactly(count: int, seed: int) -> None:
    """Components with cycles of up to eleven causes are enumerated, so they are exact too."""
    problem = problem_of(count)
    ledger = history(problem, seed, rounds=4, tree=False)
    expected, nothing = brute_force(problem, ledger)
    probability, quiet = settled(problem, ledger)
    assert np.abs(probability - expected).max() < 1e-3
    assert abs(quiet - nothing) < 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_leaves_are_decoded_exactly(seed: int) -> None:
    """Uplinks and paths between leaves take part in the same exact posterior."""
    problem = problem_of(6, leaves=2)
    ledger = history(problem, seed, rounds=2, tree=False)
    expected, _ = brute_force(problem, ledger)
    probability, _ = settled(problem, ledger)
    assert np.abs(probability - expected).max() < 2e-3
