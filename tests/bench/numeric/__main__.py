"""Numeric trouble from the symptom to the machine.

    python -m tests.bench.numeric [--only gpu-wrong] [--p 1 0.1] [--budget 5m] [--cut]
    python -m tests.bench.numeric --simulated

Live rows need a lab of eight on this machine, one lab a row; the percentages come from simulated
replays of 1,024 machines. What the checks cost is measured as by tests.bench.numeric_overhead.
"""

import argparse
import sys
from collections.abc import Iterator

from brctl.localise.repetitions import repetitions_for
from tests.bench.numeric.live import FAULTS, OF_A_MACHINE, strike
from tests.bench.numeric.simulated import MACHINES, MISS, SPAN, rows
from tests.bench.numeric_overhead import GOAL, Length, measure

PROBABILITIES = (1.0, 0.1, 0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--p", nargs="+", type=float, default=list(PROBABILITIES))
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--simulated", action="store_true", help="no lab")
    parser.add_argument(
        "--cut", action="store_true", help="replicas of four nodes (tp 2, pp 2) instead of one"
    )
    options = parser.parse_args()
    say(f"replays of {MACHINES} machines, {SPAN} a replica, one of them bad:")
    for row in rows(options.p, options.draws):
        say(row.line())
    for p in options.p:
        say(f"p={p:g} a call, missed at {MISS:g}: {repetitions_for(p, MISS)} repetitions planned")
    say_overhead()
    if options.simulated:
        return
    for fault, p in cases(options.only, options.p):
        for line in strike(fault, p, options.budget, whole_replicas=not options.cut).lines():
            say(line)


def say_overhead() -> None:
    """Needs torch, which the simulated rows do not."""
    from brctl.training.numeric_checks import LOOK_EVERY

    say(f"checks inside the job every {LOOK_EVERY} steps, of CPU time; goal {GOAL:.1%}:")
    for overhead in measure(Length(ranks=2, steps=4 * LOOK_EVERY, every=LOOK_EVERY)):
        say(overhead.row())


def cases(faults: list[str], probabilities: list[float]) -> Iterator[tuple[str, float]]:
    """Code and data are wrong every time; a machine now and then."""
    for fault in faults:
        for p in probabilities if fault in OF_A_MACHINE else (1.0,):
            yield fault, p


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
