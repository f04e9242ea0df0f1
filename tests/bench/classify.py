"""Accuracy, calibration and speed of `brctl logs classify`.

    python3 tests/bench/classify.py [--corpus DIR ...] [--speed [MIB]] [--wrong] [--without-own-rows] [-o json]

A corpus is a folder with cases.jsonl (file, fault_class, origin, culprit) and logs/; several are
judged together. Claimed is every answer but unknown.
"""

# ruff: noqa: E501 - tables and patterns are read whole

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from brctl.engine.logs.classify import Classifier  # noqa: E402
from brctl.model.fault import FaultClass  # noqa: E402
from brctl.model.log_verdict import LogVerdict  # noqa: E402
from tests.bench.own_rows import verdicts_without_own_rows  # noqa: E402

DEFAULT_CORPUS = ROOT.parent / "shared" / "corpus"


@dataclass(frozen=True)
class LabelledLog:
    """A labelled log and what was said about it."""

    row: dict[str, str]
    said: LogVerdict

    @property
    def class_right(self) -> bool:
        return self.said.fault.value == self.row["fault_class"]

    @property
    def origin_right(self) -> bool:
        return self.said.origin.value == self.row["origin"]

    @property
    def is_claim(self) -> bool:
        """A fault is claimed."""
        return self.said.fault not in (FaultClass.UNKNOWN, FaultClass.NO_FAULT)

    @property
    def is_clean(self) -> bool:
        return self.row["fault_class"] == "no-fault"


def run_cases(corpus: Path) -> list[LabelledLog]:
    classifier = Classifier()
    rows = [json.loads(line) for line in (corpus / "cases.jsonl").read_text().splitlines() if line]
    return [
        LabelledLog(row, classifier.classify_paths([corpus / "logs" / row["file"]]).overall)
        for row in rows
    ]


def confusion(cases: list[LabelledLog]) -> list[str]:
    counts = Counter((c.row["fault_class"], c.said.fault.value) for c in cases)
    labels = sorted({label for pair in counts for label in pair})
    lines = ["label -> said (count)"]
    for label in labels:
        actual = [(n, s) for (labelled, s), n in counts.items() if labelled == label]
        if actual:
            parts = ", ".join(
                f"{'' if s == label else '!'}{s} {n}" for n, s in sorted(actual, reverse=True)
            )
            lines.append(f"  {label:<22}{parts}")
    return lines


def reliability(cases: list[LabelledLog]) -> list[str]:
    lines = ["stated probability   cases   said on average   right"]
    for low in (0.0, 0.5, 0.6, 0.7, 0.8, 0.9):
        high = {0.0: 0.5, 0.9: 1.01}.get(low, low + 0.1)
        inside = [c for c in cases if low <= c.said.probability < high]
        if inside:
            actual = sum(c.said.probability for c in inside) / len(inside)
            right = sum(c.class_right for c in inside) / len(inside)
            lines.append(
                f"  {low:.1f} to {min(high, 1.0):.1f}         {len(inside):>5}   {actual:>15.2f}   {right:>5.2f}"
            )
    return lines


def by_threshold(cases: list[LabelledLog]) -> list[str]:
    """What a higher bar for claiming a class would cost: below it the answer would be unknown."""
    lines = ["claimed from   claims   precision   class right"]
    for least in (0.0, 0.5, 0.6, 0.7, 0.8, 0.9):
        kept = [c for c in cases if c.is_claim and c.said.probability >= least]
        quiet = [c for c in cases if c.is_claim and c.said.probability < least]
        right = sum(c.class_right for c in cases if not c.is_claim)
        right += sum(c.class_right for c in kept) + sum(
            c.row["fault_class"] == "unknown" for c in quiet
        )
        precision = sum(c.class_right for c in kept) / max(1, len(kept))
        lines.append(
            f"  {least:.1f}          {len(kept):>6}   {precision:>9.3f}   {right / len(cases):>11.3f}"
        )
    return lines


def scores(cases: list[LabelledLog]) -> dict[str, float]:
    clean = [c for c in cases if c.is_clean]
    faulty = [c for c in cases if not c.is_clean]
    alarms = sum(c.said.fault.value not in ("no-fault", "unknown") for c in clean)
    claimed = [c for c in cases if c.said.fault.value != "unknown"]
    return {
        "cases": len(cases),
        "class_right_ratio": sum(c.class_right for c in cases) / len(cases),
        "class_right_faulty_ratio": sum(c.class_right for c in faulty) / max(1, len(faulty)),
        "claimed_ratio": len(claimed) / len(cases),
        "precision_ratio": sum(c.class_right for c in claimed) / max(1, len(claimed)),
        "missed_faults": sum(c.said.fault.value == "no-fault" for c in faulty),
        "origin_right_ratio": sum(c.origin_right for c in cases) / len(cases),
        "clean_alarm_ratio": alarms / max(1, len(clean)),
        "brier": sum((c.said.probability - c.class_right) ** 2 for c in cases) / len(cases),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, action="append")
    parser.add_argument("--speed", type=int, nargs="?", const=256, metavar="MIB")
    parser.add_argument("--wrong", action="store_true", help="print the cases that came out wrong")
    parser.add_argument(
        "--without-own-rows",
        action="store_true",
        help="leave out rules only a log's source matched",
    )
    parser.add_argument("-o", choices=["text", "json"], default="text")
    options = parser.parse_args()
    if options.speed:
        from tests.bench.classify_speed import print_speed

        return print_speed(options.speed)
    folders = options.corpus or [DEFAULT_CORPUS]
    missing = [str(folder) for folder in folders if not (folder / "cases.jsonl").is_file()]
    if missing:
        print(f"no labelled cases at {', '.join(missing)}: give folders with cases.jsonl and logs/")
        return 3
    if options.without_own_rows:
        cases = [LabelledLog(row, said) for row, said in verdicts_without_own_rows(folders)]
    else:
        cases = [case for folder in folders for case in run_cases(folder)]
    result = scores(cases)
    if options.o == "json":
        print(json.dumps(result, indent=2))
        return 0
    print("\n".join([*confusion(cases), "", *reliability(cases), "", *by_threshold(cases), ""]))
    for name, value in result.items():
        print(f"{name:<28}{value:.3f}" if isinstance(value, float) else f"{name:<28}{value}")
    if options.wrong:
        print_wrong(cases)
    return 0


def print_wrong(cases: list[LabelledLog]) -> None:
    for case in cases:
        if case.class_right and case.origin_right:
            continue
        actual = case.said
        print(
            f"\n{case.row['id']}: label {case.row['fault_class']}/{case.row['origin']}, said {actual.fault}/{actual.origin} {actual.probability}"
        )
        for line in actual.evidence[:6]:
            print(f"    {line.role} {line.signature}: {line.text[:140]}")


if __name__ == "__main__":
    sys.exit(main())
