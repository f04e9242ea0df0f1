"""A site's group test as a program: bad nodes named on its command line, one JSON line a round.

`group_program.py --bad n3=1.0 --slow n5=0.5 --noise 0.01`; misbehaves on request with `--do`.
"""

import argparse
import json
import random
import sys
import time


def main() -> None:
    """Answer rounds until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bad", action="append", default=[])
    parser.add_argument("--pair", action="append", default=[])
    parser.add_argument("--slow", action="append", default=[])
    parser.add_argument("--hang", action="append", default=[])
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--do", default="", help="bad-json, short, die, silence, nan, ahead")
    parser.add_argument("--at", type=int, default=1, help="from which round on to misbehave")
    options = parser.parse_args()
    rng = random.Random(1)
    bad = {name: float(p) for name, p in (item.split("=") for item in options.bad)}
    slow = {name: float(loss) for name, loss in (item.split("=") for item in options.slow)}
    pairs = [set(item.split("+")) for item in options.pair]
    for line in sys.stdin:
        order = json.loads(line)
        if options.do and order["round"] >= options.at and misbehave(options.do, order):
            continue
        results = [
            one(set(group), order["reps"], bad, slow, pairs, set(options.hang), options.noise, rng)
            for group in order["groups"]
        ]
        say(json.dumps({"results": results}))


def say(line: str) -> None:
    """One line to whoever asked."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def one(
    group: set[str],
    reps: int,
    bad: dict[str, float],
    slow: dict[str, float],
    pairs: list[set[str]],
    hang: set[str],
    noise: float,
    rng: random.Random,
) -> dict[str, object]:
    """The result of one group."""
    if group & hang:
        return {"reps": reps, "failed": None, "busbw_gb_per_s": None}
    chances = [noise, *(p for name, p in bad.items() if name in group)]
    chances += [1.0 for pair in pairs if pair <= group]
    failed = sum(any(rng.random() < p for p in chances) for _ in range(reps))
    worst = max((loss for name, loss in slow.items() if name in group), default=0.0)
    return {
        "reps": reps,
        "failed": failed,
        "busbw_gb_per_s": 370 * (1 - worst) * rng.gauss(1, 0.01),
    }


def misbehave(how: str, order: dict[str, object]) -> bool:
    """Break the protocol; False when the round is to be answered after all."""
    groups = order["groups"]
    assert isinstance(groups, list)
    good = [{"reps": order["reps"], "failed": 0, "busbw_gb_per_s": 370.0} for _ in groups]
    if how == "die":
        sys.stderr.write("the fabric is on fire\n")
        sys.exit(7)
    if how == "silence":
        time.sleep(600)
    answer = {
        "bad-json": "results: all fine",
        "short": json.dumps({"results": good[:-1]}),
        "nan": '{"results": [' + ", ".join('{"failed": NaN}' for _ in groups) + "]}",
        "strings": json.dumps({"results": [{"reps": "8", "failed": "0"} for _ in groups]}),
        "negative": json.dumps({"results": [{"reps": 8, "failed": -1} for _ in groups]}),
        "other-round": json.dumps({"round": 99, "results": good}),
        "array": json.dumps(good),
        "long": "[" * 20_000_000,
    }[how]
    say(answer)
    return True


if __name__ == "__main__":
    main()
