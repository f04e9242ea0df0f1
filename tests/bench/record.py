"""What redaction takes out, what it changes, and what recording an incident costs.

    python -m tests.bench.record [--corpus DIR ...] [--nodes 1024] [FILE ...]

The table has a row for each way of packing: how many of the planted secrets nobody can read any
more. Each fault of a lab is recorded, written, judged again, redacted for the public and judged
once more: bytes, seconds of processor time, whether the verdict is the same. Over each corpus
(cases.jsonl and logs/) every log is classified as it is and redacted. One look of many nodes is
made of the lab's answers. Files that are named, as a real lab's, are judged in the same ways.
"""

import argparse
import json
import random
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import zstandard

from brctl.engine.application.incident_redaction import redact
from brctl.engine.logs.classify import Classifier
from brctl.engine.recording.archive import SUFFIX, read
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.judging import judge_file
from brctl.engine.recording.look import encode
from brctl.engine.recording.ring import ANSWERS, LOOK, answers_in, folders, look_in
from brctl.model.inventory import Inventory, Node
from brctl.model.log_verdict import LogVerdict
from brctl.view.recorded.pseudonyms import Profile
from brctl.view.recorded.replay import SAME
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
    print("fault                 recorded s   KB   written s   again s   redacted s   verdict")
    differ = 0
    for fault in ("", *faults()):
        with tempfile.TemporaryDirectory() as folder:
            state, path = Path(folder) / "state", Path(folder) / f"x{SUFFIX}"
            seconds = [_seconds(RecordedSite(state, fault).diagnose)]
            seconds.append(_seconds(partial(_write, state, path)))
            differ += _print_file(fault or "healthy", path, seconds)
    return differ


def _print_file(name: str, path: Path, seconds: list[float]) -> int:
    """One file judged again, and once more as the public gets it."""
    changes: list[str] = []
    seconds.append(_seconds(lambda: changes.append(_change(path))))
    seconds.append(_seconds(lambda: changes.append(_redacted_change(path))))
    size = path.stat().st_size / 1e3
    changed = [change for change in changes if change != SAME]
    print(
        f"  {name[:20]:<20}{seconds[0]:>10.2f}{size:>6.1f}{seconds[1]:>11.2f}{seconds[2]:>10.2f}"
        f"{seconds[3]:>13.2f}   {' then '.join(changes)}",
        flush=True,
    )
    return len(changed)


def print_files(paths: Sequence[Path]) -> int:
    """Files from elsewhere; how many verdicts differ."""
    return sum(_print_file(path.name, path, [0.0, 0.0]) for path in paths)


def print_fleet(nodes: int) -> None:
    """One look of so many nodes, written: bytes, seconds, and memory at its height."""
    with tempfile.TemporaryDirectory() as folder:
        state, path = Path(folder) / "state", Path(folder) / f"x{SUFFIX}"
        RecordedSite(state, "gpu-lost").diagnose()
        (recorded,) = folders(state)
        answers = _multiplied(recorded, nodes)
        seconds = _seconds(partial(_write, state, path))
        manifest = read(path).manifest
        height = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{nodes} nodes, {answers} answers: {path.stat().st_size / 1e6:.1f} MB in {seconds:.1f}"
            f" s, memory {height:.0f} MB, left out: {list(manifest.cuts) or 'nothing'}"
        )


def _multiplied(recorded: Path, nodes: int) -> int:
    """The answers of the lab's first node, given by every node of a fleet with its own numbers."""
    look, answers = look_in(recorded), answers_in(recorded)
    names = [*look.nodes, *(f"x{number:04}" for number in range(nodes - len(look.nodes)))]
    inventory = Inventory({name: Node(name, name) for name in names})
    more = [
        replace(one, node=name, stdout=_of_another(one.stdout, name))
        for name in names[len(look.nodes) :]
        for one in answers
        if one.node == look.nodes[0]
    ]
    lines = b"".join(encode(one) + b"\n" for one in (*answers, *more))
    (recorded / ANSWERS).write_bytes(zstandard.ZstdCompressor(level=1).compress(lines))
    (recorded / LOOK).write_bytes(encode(replace(look, nodes=tuple(names), inventory=inventory)))
    return len(answers) + len(more)


def _of_another(said: str, node: str) -> str:
    """Counters, times and ids differ between nodes, and pack as badly as they do."""
    draw = random.Random(node)
    numbers = re.sub(r"[1-9][0-9]{2,}", lambda m: str(draw.randrange(10 ** len(m[0]))), said)
    return numbers.replace('"n1"', f'"{node}"')


def _write(state: Path, path: Path) -> None:
    path.write_bytes(export(state, Wanted()))


def _change(path: Path) -> str:
    """What became of the verdicts, newest look first; `SAME` where all are."""
    changes = [look.change for look in judge_file(path, None).looks]
    return next((change for change in changes if change != SAME), SAME)


def _redacted_change(path: Path) -> str:
    """The same once names are gone, as `incident redact` says it."""
    with tempfile.TemporaryDirectory() as home:
        page = redact(path, Path(home), Profile.PUBLIC, Path(home) / f"public{SUFFIX}")
    return str(page.body["verdict"])


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
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    options = parser.parse_args(arguments)
    wrong = print_planted() + print_faults() + print_files(options.files)
    if options.nodes:
        print_fleet(options.nodes)
    for corpus in options.corpus:
        wrong += print_corpus(corpus)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
