"""How every reader of foreign words, and every command over a fleet, bears hostile inputs.

    python -m tests.bench.hostile [INPUTS] [--only readers|fleet]

One line a reader: inputs tried, slowest of them and the most memory one took, and crashes. Times
are CPU seconds; memory is what Python allocated while one input was read, of every tenth input.
Then a fleet of 64 of which somebody owns three, see `tests/bench/hostile_fleet.py`; that is the
longer part (nine commands on nine fleets), and most of it is waiting for nodes that say nothing.
Exit 1 when anything crashed or wronged a healthy node.
"""

import argparse
import random
import sys
import time
import tracemalloc
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.bench.hostile_fleet import try_fleets
from tests.hostile.readers import READERS, Reader

INPUTS = 10_000
EVERY = 10


@dataclass
class Tally:
    """What one reader bore."""

    slowest_s: float = 0.0
    most_bytes: int = 0
    crashes: int = 0
    refused: int = 0


def bear(count: int, name: str) -> Tally:
    """Read so many inputs; the seed is the reader's name."""
    reader, random_, tally = READERS[name], random.Random(zlib.crc32(name.encode())), Tally()
    for number in range(count):
        raw = reader.make(random_)
        began = time.process_time()
        _read(reader, raw, tally)
        tally.slowest_s = max(tally.slowest_s, time.process_time() - began)
        if number % EVERY == 0:
            tracemalloc.start()
            _read(reader, raw, Tally())
            tally.most_bytes = max(tally.most_bytes, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return tally


def _read(reader: Reader, raw: bytes, tally: Tally) -> None:
    try:
        reader.read(raw)
    except reader.refusals:
        tally.refused += 1
    except Exception as error:  # noqa: BLE001 - any is a crash, and is counted
        tally.crashes += 1
        print(f"  {error!r:.200} by {raw[:80]!r}")


def main(arguments: list[str]) -> int:
    """Try the readers, then the fleet."""
    parser = argparse.ArgumentParser(description="How readers bear hostile inputs.")
    parser.add_argument("inputs", nargs="?", type=int, default=INPUTS, help="default 10000")
    parser.add_argument("--only", choices=("readers", "fleet"), default="")
    asked = parser.parse_args(arguments)
    crashes = try_readers(asked.inputs) if asked.only != "fleet" else 0
    problems = try_fleets() if asked.only != "readers" else 0
    return 1 if crashes + problems else 0


def try_readers(count: int) -> int:
    """Print a line a reader; how many inputs crashed one."""
    crashes = 0
    print(f"{'reader':14} {'inputs':>7} {'refused':>8} {'slowest':>9} {'memory':>9} {'crashes':>8}")
    names = sorted(READERS)
    with ProcessPoolExecutor() as processes:
        for name, tally in zip(names, processes.map(partial(bear, count), names), strict=True):
            crashes += tally.crashes
            print(
                f"{name:14} {count:7} {tally.refused:8} {tally.slowest_s * 1e3:6.1f} ms"
                f" {tally.most_bytes / 2**20:5.1f} MiB {tally.crashes:8}",
                flush=True,
            )
    return crashes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
