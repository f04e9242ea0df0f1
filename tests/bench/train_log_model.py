"""Trains the word model of `brctl logs classify` from labelled logs, and tries it on other sources.

    python -m tests.bench.train_log_model --corpus DIR [--corpus DIR ...] [--write]

A corpus is a folder with cases.jsonl (file, fault_class, source_url or facts_from) and logs/. The
composed lines, excerpts and logs of `log_tables.py` are examples as well. Prints, for families of sources the model was not trained on: how often the rules are right alone
and together with the model, and how often its likeliest fault is right. Figures of files instead of
families would be too good: one repository prints alike.
"""

# ruff: noqa: E501 - lines of the report are read whole

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
from numpy.typing import NDArray

from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.logs.log_sources import read_blocks
from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.words.line_words import BUCKETS, buckets_of, features_of_line
from brctl.evidence.logs.words.word_model import QUIET, WordModel, hear
from brctl.library.log_model import MODEL_FILE
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict
from tests.bench.log_model_training import (
    CLASSES,
    HeardLog,
    Tables,
    examples_of,
    heard_example,
    heard_without_rules,
    train,
)
from tests.bench.log_tables import read_tables

FOLDS = 5


@dataclass(frozen=True)
class LabelledLog:
    """One case: its text, its class, its family of sources, and what was read in it."""

    text: str
    fault: FaultClass
    family: str
    events: Sequence[LogEvent]
    readable: bool

    def said(self, words: Mapping[FaultClass, float]) -> LogVerdict:
        """What the rules say together with the words; without any, what they say alone."""
        return judge("", self.events, readable=self.readable, words=words)

    def heard_by(self, model: WordModel) -> Mapping[FaultClass, float]:
        """How likely a model makes each class by the log's lines."""
        lines = dict(enumerate(self.text.splitlines(), 1))
        return hear(model, lines, self.events).shares


def family_of(row: dict[str, str]) -> str:
    """The repository or site a case comes from; of one written anew, the case its facts are of."""
    where = row.get("source_url") or row.get("source") or row.get("facts_from") or row["id"]
    parsed = urlparse(where)
    parts = parsed.path.strip("/").split("/")
    return f"{parsed.netloc}/{'/'.join(parts[:2])}" if parsed.netloc else where


def read_corpus(folder: Path) -> list[LabelledLog]:
    """The cases of one folder."""
    rows = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines() if line]
    classifier = Classifier()
    return [_read(classifier, folder / "logs" / row["file"], row) for row in rows]


def _read(classifier: Classifier, path: Path, row: dict[str, str]) -> LabelledLog:
    events, _, readable = classifier.read_events(str(path), Blocks(read_blocks(path, [])))
    text = path.read_text(errors="replace")
    return LabelledLog(text, FaultClass(row["fault_class"]), family_of(row), events, readable)


def folds(families: NDArray[np.str_]) -> Iterator[NDArray[np.bool_]]:
    """Which logs are tried in each round: whole families, shared out by their hash."""
    ordered = sorted(set(families), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    for number in range(FOLDS):
        yield np.isin(families, ordered[number::FOLDS])


def tried_elsewhere(logs: Sequence[LabelledLog], composed: Sequence[HeardLog]) -> list[WordModel]:
    """For every log a model that saw nothing of its family, but all that was composed."""
    heard = [heard_without_rules(log.text, log.fault) for log in logs]
    models: dict[int, WordModel] = {}
    for tried in folds(np.array([log.family for log in logs])):
        others = [heard[number] for number in np.flatnonzero(~tried)]
        model = model_of(train(examples_of([*others, *composed])))
        models |= dict.fromkeys(np.flatnonzero(tried).tolist(), model)
    return [models[number] for number in range(len(logs))]


def model_of(tables: Tables, surprise: bytes = bytes(BUCKETS)) -> WordModel:
    """The tables as they are shipped: weights of words in steps of a signed byte."""
    scale = float(np.abs(tables.weights).max()) / 127.0
    return WordModel(
        classes=CLASSES,
        weights=np.round(tables.weights / scale).astype(np.int8).tobytes(),
        scale=scale,
        bias=tuple(tables.bias.tolist()),
        named=tuple(tables.named.tolist()),
        flags=tuple(tables.flags.tolist()),
        facts=tuple(tuple(row) for row in tables.facts.tolist()),
        surprise=surprise,
    )


def surprise_table(logs: Sequence[LabelledLog]) -> NDArray[np.uint8]:
    """Sixteenths of a bit by bucket: in how few logs without a fault its words stand."""
    ordinary = [log for log in logs if log.fault is FaultClass.NO_FAULT]
    seen = np.zeros(BUCKETS)
    for log in ordinary:
        words = {f for line in log.text.splitlines() for f in features_of_line(line)}
        seen[sorted(buckets_of(f for f in words if f.startswith("w:")))] += 1
    bits = -np.log2((seen + 0.5) / (len(ordinary) + 1.0))
    return np.clip(np.round(16.0 * bits), 0, 255).astype(np.uint8)


def write_model(path: Path, model: WordModel) -> None:
    """The tables in a file without pickles."""
    np.savez_compressed(
        path,
        classes=np.array([fault.value for fault in model.classes]),
        weights=np.frombuffer(model.weights, dtype=np.int8),
        scale=np.float64(model.scale),
        bias=np.array(model.bias),
        named=np.array(model.named),
        flags=np.array(model.flags),
        facts=np.array(model.facts),
        surprise=np.frombuffer(model.surprise, dtype=np.uint8),
    )


def report(logs: Sequence[LabelledLog], words: Sequence[Mapping[FaultClass, float]]) -> list[str]:
    """The figures, as lines."""
    families = len({log.family for log in logs})
    lines = [f"{len(logs)} logs, {families} families"]
    alone = [log.said({}) for log in logs]
    heard = [log.said(shares) for log, shares in zip(logs, words, strict=True)]
    lines += [_scores("rules alone", logs, alone), _scores("rules and words", logs, heard)]
    faulty = [(log.fault, _leads(each)) for log, each in zip(logs, words, strict=True)]
    faulty = [(fault, leads) for fault, leads in faulty if fault not in QUIET]
    first = sum(fault is leads[0][0] for fault, leads in faulty)
    three = sum(fault in [lead for lead, _ in leads[:3]] for fault, leads in faulty)
    lines.append(
        f"{len(faulty)} faults: by words alone the first is right {first / len(faulty):.2f}, one of three {three / len(faulty):.2f}"
    )
    for low, high in ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01)):
        inside = [
            (fault is leads[0][0], leads[0][1])
            for fault, leads in faulty
            if low <= leads[0][1] < high
        ]
        if inside:
            right, stated = (sum(values) / len(inside) for values in zip(*inside, strict=True))
            lines.append(
                f"share {low:.1f} to {min(high, 1.0):.1f}: {len(inside):>3} logs, said {stated:.2f}, right {right:.2f}"
            )
    return lines  # fmt: skip


def _scores(name: str, logs: Sequence[LabelledLog], said: Sequence[LogVerdict]) -> str:
    right = [log.fault is verdict.fault for log, verdict in zip(logs, said, strict=True)]
    claimed = [ok for ok, verdict in zip(right, said, strict=True) if verdict.fault not in QUIET]
    brier = np.mean(
        [(verdict.probability - ok) ** 2 for ok, verdict in zip(right, said, strict=True)]
    )
    return f"{name}: class right {np.mean(right):.3f}, claimed faults {len(claimed)}, right {np.mean(claimed):.3f}, Brier {brier:.3f}"  # fmt: skip


def _leads(words: Mapping[FaultClass, float]) -> list[tuple[FaultClass, float]]:
    return sorted(
        ((fault, share) for fault, share in words.items() if fault not in QUIET),
        key=lambda item: (-item[1], item[0].value),
    )


def main() -> int:
    """Train, try on held-out families, print, and write when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, action="append", required=True)
    parser.add_argument("--write", action="store_true", help=f"write {MODEL_FILE}")
    options = parser.parse_args()
    logs = [log for folder in options.corpus for log in read_corpus(folder)]
    composed = [heard_example(row) for row in read_tables()]
    if options.write:
        heard = [heard_without_rules(log.text, log.fault) for log in logs]
        tables = train(examples_of([*heard, *composed]))
        write_model(MODEL_FILE, model_of(tables, surprise_table(logs).tobytes()))
        print(f"wrote {MODEL_FILE}, {MODEL_FILE.stat().st_size} bytes")
    models = tried_elsewhere(logs, composed)
    words = [log.heard_by(model) for log, model in zip(logs, models, strict=True)]
    print("\n".join(report(logs, words)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
