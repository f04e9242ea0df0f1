"""Would fitted probabilities of log verdicts be better on families they were not fitted to?

    python -m tests.bench.log_calibration --corpus DIR [--corpus DIR ...] [--tried-on DIR ...]

Fits a line to the log odds of what is stated, one for claims, one for `unknown` and one for
`no-fault`, and tries it on other families. Every log of --corpus is read without the rules that
only its own source matched (decision 0201). Logs of --tried-on are stated as fitted on all of
these. Nothing that ships is made of it: decision 0424.
"""

import argparse
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brctl.model.fault import FaultClass
from tests.bench.classify import LabelledLog, run_cases
from tests.bench.own_rows import source_of, verdicts_without_own_rows

FOLDS = 10
PULL = 2.0
"""Draws the slope towards 1, what is stated now, as two logs would."""

_STEPS = 40
_KINDS: tuple[tuple[str, Callable[[FaultClass], bool]], ...] = (
    ("claims", lambda fault: fault not in (FaultClass.UNKNOWN, FaultClass.NO_FAULT)),
    ("unknown", lambda fault: fault is FaultClass.UNKNOWN),
    ("no-fault", lambda fault: fault is FaultClass.NO_FAULT),
)


@dataclass(frozen=True)
class Stated:
    """Verdicts of one kind: the log odds of what was stated, and which were right."""

    odds: NDArray[np.float64]
    right: NDArray[np.float64]

    def chosen(self, keep: NDArray[np.bool_]) -> "Stated":
        return Stated(self.odds[keep], self.right[keep])


def stated(cases: Sequence[LabelledLog]) -> Stated:
    p = np.clip([case.said.probability for case in cases], 0.02, 0.98)
    return Stated(np.log(p / (1.0 - p)), np.array([case.class_right for case in cases], float))


def chance(line: NDArray[np.float64], odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability that a fitted line gives."""
    given: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-(line[0] + line[1] * odds)))
    return given


def fitted(seen: Stated) -> NDArray[np.float64]:
    """Intercept and slope under which what was right is least surprising (Newton's steps)."""
    rows = np.column_stack([np.ones_like(seen.odds), seen.odds])
    line, pull = np.array([0.0, 1.0]), np.diag([1e-6, PULL])
    for _ in range(_STEPS):
        p = chance(line, seen.odds)
        slope = rows.T @ (p - seen.right) + pull @ (line - [0.0, 1.0])
        line = line - np.linalg.solve((rows * (p * (1.0 - p))[:, None]).T @ rows + pull, slope)
    return line


def across_families(seen: Stated, families: NDArray[np.str_]) -> NDArray[np.float64]:
    """Probabilities by lines that were fitted to other families."""
    names = sorted(set(families), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    given = np.zeros_like(seen.odds)
    for number in range(FOLDS):
        tried = np.isin(families, names[number::FOLDS])
        given[tried] = chance(fitted(seen.chosen(~tried)), seen.odds[tried])
    return given


def row(name: str, right: NDArray[np.float64], *ways: NDArray[np.float64]) -> str:
    """One line: what is stated now, and otherwise."""
    told = "".join(f"  {p.mean():.3f} {((p - right) ** 2).mean():.4f}" for p in ways)
    return f"{name:18}{len(right):5}  {right.mean():.3f}{told}"


def main() -> None:
    """Print what is stated, how often it was right, and what a fitted line would have stated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, action="append", required=True)
    parser.add_argument("--tried-on", type=Path, action="append", default=[])
    options = parser.parse_args()
    seen = [LabelledLog(*found) for found in verdicts_without_own_rows(options.corpus)]
    others = [case for folder in options.tried_on for case in run_cases(folder)]
    print("                   logs  right  stated now  fitted elsewhere (mean, Brier)")
    for name, is_kind in _KINDS:
        mine = [case for case in seen if is_kind(case.said.fault)]
        read, families = stated(mine), np.array([source_of(case.row) for case in mine])
        now = chance(np.array([0.0, 1.0]), read.odds)
        print(row(name, read.right, now, across_families(read, families)))
        if others:
            aside = stated([case for case in others if is_kind(case.said.fault)])
            now = chance(np.array([0.0, 1.0]), aside.odds)
            print(row(f"  {name}, aside", aside.right, now, chance(fitted(read), aside.odds)))


if __name__ == "__main__":
    main()
