"""Are verdicts right on incidents nobody rehearsed, and do their probabilities mean something?

    python -m tests.bench.verdicts [--seeds 6] [--family NAME] [--wrong] [-o json]

Hundreds of invented incidents, in seconds and without a lab: answers of nodes that were recorded
once, made into other fleets, other nodes, several faults, missing answers and red herrings, then
read and decided by the code that `dx` runs after asking. The truth comes with the story of each
incident and not from any rule of brctl. Families of the half that is set aside were not looked at
while rules were changed.
"""

import argparse
import json
from collections.abc import Sequence

from tests.bench.verdicts.conclude import conclude
from tests.bench.verdicts.families import HALVES, incidents
from tests.bench.verdicts.score import Outcome, Share, deciles, table


def run(half: str, seeds: int, family: str = "") -> list[Outcome]:
    """Every incident of a half with what is concluded of it."""
    told = (one for one in incidents(half, seeds) if family in ("", one.family))
    return [Outcome(one, conclude(one.fleet)) for one in told]


def by_family(outcomes: Sequence[Outcome]) -> list[str]:
    lines = []
    for name in dict.fromkeys(o.incident.family for o in outcomes):
        mine = [o for o in outcomes if o.incident.family == name]
        said = ", ".join(
            dict.fromkeys(f"{o.main.fault.value} {o.main.probability:.2f}" for o in mine)
        )
        right = sum(o.class_right for o in mine)
        who = sum(o.culprit_right for o in mine)
        evict = sum(bool(o.move_evicts) for o in mine)
        lines.append(
            f"  {name:34} class {right}/{len(mine)} nodes {who} evicts {evict}  {said[:110]}"
        )
    return lines


def words(half: str, outcomes: Sequence[Outcome]) -> list[str]:
    lines = [f"{half}: {len(outcomes)} incidents"]
    lines += [f"  {name:24} {value}" for name, value in table(outcomes).items()]
    lines.append("  stated     claims  mean  right")
    for name, count, mean, right in deciles(outcomes):
        lines.append(f"  {name:10} {count:6}  {mean:.2f}  {right:.2f}")
    return lines


def document(half: str, outcomes: Sequence[Outcome]) -> dict[str, object]:
    figures = {
        name: [value.right, value.of] if isinstance(value, Share) else value
        for name, value in table(outcomes).items()
    }
    return {"half": half, "incidents": len(outcomes), **figures, "deciles": deciles(outcomes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="incidents of each family")
    parser.add_argument("--family", default="", help="only this one")
    parser.add_argument("--half", choices=sorted(HALVES), help="only this half")
    parser.add_argument(
        "--wrong", action="store_true", help="each family, but of the half set aside"
    )
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    halves = [options.half] if options.half else list(HALVES)
    found = {half: run(half, options.seeds, options.family) for half in halves}
    if options.output == "json":
        print(json.dumps([document(half, outcomes) for half, outcomes in found.items()]))
        return
    for half, outcomes in found.items():
        print("\n".join(words(half, outcomes)))
        if options.wrong and ("set aside" not in half or options.family):
            print("\n".join(by_family(outcomes)))


if __name__ == "__main__":
    main()
