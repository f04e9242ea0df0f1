"""What redaction takes out, what it changes, and what it costs.

    python -m tests.bench.record [--corpus DIR ...]

The table has a row for each way of packing: how many of the planted secrets nobody can read any
more. Over each corpus (cases.jsonl and logs/) every log is classified as it is and redacted.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from brctl.engine.logs.classify import Classifier
from brctl.model.log_verdict import LogVerdict
from brctl.view.redact import Redactor
from tests.view.planted_secrets import FORMS, PLANTED, opened


def print_planted() -> int:
    """The table; how many secrets came through."""
    print("secrets      gone")
    through = 0
    for form, pack in FORMS.items():
        left = [
            shape
            for shape, (text, secret) in PLANTED.items()
            if any(secret in view for view in opened(str(Redactor().document(pack(text)))))
        ]
        through += len(left)
        print(f"  {form:<14}{len(PLANTED) - len(left)} of {len(PLANTED)}  {' '.join(left)}")
    return through


def print_corpus(corpus: Path) -> int:
    """What redaction changes of a corpus; how many verdicts differ."""
    classifier = Classifier()
    rows = [json.loads(line) for line in (corpus / "cases.jsonl").read_text().splitlines() if line]
    taken: Counter[str] = Counter()
    changed: list[str] = []
    size = seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            log = corpus / "logs" / row["file"]
            began = time.process_time()
            count, copies = _redacted(log, Path(folder) / str(row["file"]), taken)
            seconds += time.process_time() - began
            size += count
            if _said(classifier, log) != _said(classifier, copies):
                changed.append(row["file"])
    print(f"{corpus.name}: {len(rows)} logs, {size / 1e6:.1f} MB, {size / 1e6 / seconds:.1f} MB/s")
    print(f"  verdicts changed: {len(changed)}  {' '.join(changed)}")
    print(f"  taken out: {dict(taken) or 'nothing'}")
    return len(changed)


def _redacted(log: Path, copy: Path, taken: Counter[str]) -> tuple[int, Path]:
    """A redacted copy of a log, a file or a folder of files."""
    size = 0
    for file in _files(log):
        text = file.read_bytes().decode("utf-8", "surrogateescape")
        redactor = Redactor(taken=taken)
        target = copy / file.relative_to(log) if log.is_dir() else copy
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(redactor.text(text).encode("utf-8", "surrogateescape"))
        size += len(text)
    return size, copy


def _files(log: Path) -> Iterable[Path]:
    return [path for path in sorted(log.rglob("*")) if path.is_file()] if log.is_dir() else [log]


def _said(classifier: Classifier, log: Path) -> tuple[object, ...]:
    said: LogVerdict = classifier.classify_paths([log]).overall
    return said.fault, said.origin, said.probability


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    options = parser.parse_args(arguments)
    wrong = print_planted()
    for corpus in options.corpus:
        wrong += print_corpus(corpus)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
