"""What redaction takes out, what it changes, and what recording an incident costs.

    python -m tests.bench.record [--corpus DIR ...]

The table has a row for each way of packing: how many of the planted secrets nobody can read any
more. Each fault of a lab is recorded, written and judged again: bytes, seconds of processor time,
whether the verdict is the same. Over each corpus (cases.jsonl and logs/) every log is classified as
it is and redacted.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from brctl.engine.logs.classify import Classifier
from brctl.engine.recording.archive import SUFFIX
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.replay import judge_again
from brctl.model.log_verdict import LogVerdict
from brctl.view.recorded.replay import SAME, JudgedAgain
from brctl.view.redact import Redactor
from tests.bench.verdicts.answers import faults
from tests.fakes.recorded_site import RecordedSite
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


def print_faults() -> int:
    """Each fault recorded and judged again; how many verdicts differ."""
    print("fault                 recorded s   KB   written s   again s   verdict")
    differ = 0
    for fault in ("", *faults()):
        with tempfile.TemporaryDirectory() as folder:
            state, path = Path(folder) / "state", Path(folder) / f"x{SUFFIX}"
            seconds = [_seconds(RecordedSite(state, fault).diagnose)]
            seconds.append(_seconds(partial(_write, state, path)))
            seconds.append(_seconds(partial(_change, path)))
            change, size = _change(path), path.stat().st_size / 1e3
        differ += change != SAME
        print(
            f"  {fault or 'healthy':<20}{seconds[0]:>10.2f}{size:>6.1f}"
            f"{seconds[1]:>11.2f}{seconds[2]:>10.2f}   {change}"
        )
    return differ


def _write(state: Path, path: Path) -> None:
    path.write_bytes(export(state, Wanted()))


def _change(path: Path) -> str:
    """What became of the verdict of the only look."""
    _, (look,) = looks_in(path)
    verdicts = asyncio.run(judge_again(look.look, look.answers))
    return JudgedAgain(look.look.id, look.look.made_by, look.look.verdicts, verdicts).change


def _seconds(do: Callable[[], object]) -> float:
    began = time.process_time()
    do()
    return time.process_time() - began


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
    wrong = print_planted() + print_faults()
    for corpus in options.corpus:
        wrong += print_corpus(corpus)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
