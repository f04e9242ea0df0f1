"""Which ranks the flight-recorder analysis suspects, beside the ranks that were made to fail.

python3 tests/bench/flight_recorder.py [--corpus DIR]

The corpus is a folder of sets; each holds one dump a rank and fault_injection.log, whose line
`Fault ranks: [..]` names the truth.
"""

import argparse
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from brctl.engine.job.flight import analyse_folder  # noqa: E402

DEFAULT_CORPUS = ROOT.parent / "shared" / "corpus" / "flight-recorder"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=DEFAULT_CORPUS)
    corpus = parser.parse_args().corpus
    sets = sorted(p.parent for p in corpus.glob("*/fault_injection.log"))
    if not sets:
        print(f"no dump sets at {corpus}: give a folder of folders with fault_injection.log")
        return 3
    right = sum(_measure(folder) for folder in sets)
    print(f"{right} of {len(sets)} sets exactly right")
    return 0 if right == len(sets) else 1


def _measure(folder: Path) -> bool:
    text = (folder / "fault_injection.log").read_text()
    match = re.search(r"Fault ranks: \[([\d, ]*)\]", text)
    truth = sorted(int(n) for n in match[1].split(",")) if match else []
    before = time.process_time()
    result = analyse_folder(folder)
    spent_s = time.process_time() - before
    actual = sorted(s.rank for s in result.suspects)
    print(f"{folder.name}: injected {truth}, suspected {actual}, {spent_s * 1000:.0f} ms CPU")
    for suspect in result.suspects:
        print(f"    {suspect.reason.value}: {suspect.detail}")
    return actual == truth


if __name__ == "__main__":
    sys.exit(main())
