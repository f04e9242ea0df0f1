"""Trains the word model of `brctl logs classify` from labelled logs, and tries it on other sources.

    python -m tests.bench.train_log_model --corpus DIR [--corpus DIR ...] [--write]

A corpus is a folder with cases.jsonl (file, fault_class, source_url or facts_from) and logs/.
Prints, for families of sources the model was not trained on: how often its likeliest class is
right, beside the rules alone, for all logs and for those on which no rule finds a cause. Figures of
files instead of families would be too good: one repository prints alike.
"""

# ruff: noqa: E501 - lines of the report are read whole

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
from numpy.typing import NDArray

from brctl.engine.logs.classify import Classifier
from brctl.evidence.logs.words.line_words import BUCKETS, buckets_of, features_of_line, sampled
from brctl.library.log_model import MODEL_FILE
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict
from tests.bench.log_model_training import (
    CLASSES,
    Examples,
    Matrix,
    examples_of,
    rule_examples,
    softmax,
    train,
)

FOLDS = 10
QUIET = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
_NO_CAUSE = np.isin(CLASSES, QUIET)


@dataclass(frozen=True)
class LabelledLog:
    """One case: its text, its class, its family of sources, and what the rules say."""

    text: str
    fault: FaultClass
    family: str
    said: LogVerdict

    @property
    def is_quiet(self) -> bool:
        """No rule finds a cause."""
        roots = [line for line in self.said.evidence if line.role is Role.ROOT]
        return self.said.fault in QUIET and not roots


def family_of(row: dict[str, str]) -> str:
    """The repository or site a case comes from; of one written anew, the case its facts are of."""
    where = row.get("source_url") or row.get("source") or row.get("facts_from") or row["id"]
    parsed = urlparse(where)
    parts = parsed.path.strip("/").split("/")
    return f"{parsed.netloc}/{'/'.join(parts[:2])}" if parsed.netloc else where


def read_corpus(folder: Path) -> list[LabelledLog]:
    """The cases of one folder."""
    classifier = Classifier()
    rows = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines() if line]
    paths = [folder / "logs" / row["file"] for row in rows]
    return [
        LabelledLog(
            path.read_text(errors="replace"),
            FaultClass(row["fault_class"]),
            family_of(row),
            classifier.classify_paths([path]).overall,
        )
        for row, path in zip(rows, paths, strict=True)
    ]


def folds(families: NDArray[np.str_]) -> Iterator[NDArray[np.bool_]]:
    """Which logs are tried in each round: whole families, shared out by their hash."""
    ordered = sorted(set(families), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    for number in range(FOLDS):
        yield np.isin(families, ordered[number::FOLDS])


def tried_elsewhere(examples: Examples, families: NDArray[np.str_]) -> Matrix:
    """Scores of every log by a model that saw nothing of its family."""
    scores = np.zeros((len(examples.labels), len(CLASSES)))
    rules = rule_examples()
    for tried in folds(families):
        weights, bias = train(examples.chosen(~tried).joined(rules))
        scores[tried] = examples.rows[tried] @ weights + bias
    return scores


def best_sharpness(scores: Matrix, labels: NDArray[np.int64]) -> float:
    """The factor on scores under which the true classes were least surprising."""
    grid = np.linspace(0.3, 4.0, 38)
    rows = np.arange(len(labels))
    return float(min(grid, key=lambda f: -np.log(softmax(f * scores)[rows, labels]).mean()))


def surprise_table(logs: Sequence[LabelledLog]) -> NDArray[np.uint8]:
    """Sixteenths of a bit by bucket: in how few logs without a fault its words stand."""
    ordinary = [log for log in logs if log.fault is FaultClass.NO_FAULT]
    seen = np.zeros(BUCKETS)
    for log in ordinary:
        words = {f for line in sampled(log.text.splitlines()) for f in features_of_line(line)}
        seen[sorted(buckets_of(f for f in words if f.startswith("w:")))] += 1
    bits = -np.log2((seen + 0.5) / (len(ordinary) + 1.0))
    return np.clip(np.round(16.0 * bits), 0, 255).astype(np.uint8)


def write_model(
    path: Path, examples: Examples, sharpness: float, surprise: NDArray[np.uint8]
) -> None:
    """Train on everything and write the tables, weights in steps of a signed byte."""
    weights, bias = train(examples.joined(rule_examples()))
    scale = float(np.abs(weights).max()) / 127.0
    np.savez_compressed(
        path,
        classes=np.array([fault.value for fault in CLASSES]),
        weights=np.round(weights / scale).astype(np.int8),
        scale=np.float64(scale),
        bias=bias,
        sharpness=np.float64(sharpness),
        surprise=surprise,
    )


def report(logs: Sequence[LabelledLog], scores: Matrix, sharpness: float) -> list[str]:
    """The figures, as lines."""
    labels = np.array([CLASSES.index(log.fault) for log in logs])
    quiet = np.array([log.is_quiet for log in logs])
    faulty = ~_NO_CAUSE[labels]
    by_rules = np.array([log.said.fault is log.fault for log in logs])
    shares = softmax(sharpness * scores)
    right = shares.argmax(axis=1) == labels
    leads = np.argsort(-np.where(_NO_CAUSE, -1.0, shares), axis=1)
    first, three = leads[:, 0] == labels, (leads[:, :3] == labels[:, None]).any(axis=1)
    kept = np.where(quiet, right, by_rules)
    lines = [
        f"{len(logs)} logs, {len({log.family for log in logs})} families, sharpness {sharpness:.1f}",
        f"rules alone: class right {by_rules.mean():.3f}",
        f"the model's class where no rule finds a cause: {kept.mean():.3f}",
        f"no rule finds a cause in {quiet.sum()}: rules right {by_rules[quiet].mean():.3f}, model {right[quiet].mean():.3f}",
    ]  # fmt: skip
    for name, mask in (("such faults", quiet & faulty), ("all faults", faulty)):
        lines.append(
            f"{name}, {mask.sum()}: first lead right {first[mask].mean():.2f}, one of three {three[mask].mean():.2f}"
        )
    top = shares[np.arange(len(labels)), leads[:, 0]]
    for low, high in ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01)):
        mask = (top >= low) & (top < high)
        if mask.any():
            lines.append(
                f"first lead stated {low:.1f} to {min(high, 1.0):.1f}: {mask.sum():>3} logs, said {top[mask].mean():.2f}, right {first[mask].mean():.2f}"
            )
    return lines


def main() -> int:
    """Train, try on held-out families, print, and write when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, action="append", required=True)
    parser.add_argument("--write", action="store_true", help=f"write {MODEL_FILE}")
    options = parser.parse_args()
    logs = [log for folder in options.corpus for log in read_corpus(folder)]
    examples = examples_of([(log.text, log.fault) for log in logs])
    scores = tried_elsewhere(examples, np.array([log.family for log in logs]))
    sharpness = best_sharpness(scores, examples.labels)
    print("\n".join(report(logs, scores, sharpness)))
    if options.write:
        write_model(MODEL_FILE, examples, sharpness, surprise_table(logs))
        print(f"wrote {MODEL_FILE}, {MODEL_FILE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
