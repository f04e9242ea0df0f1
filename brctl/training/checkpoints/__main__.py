"""Print what each rule of backup placement loses.

`python -m brctl.training.checkpoints tp=8,dp=32,pp=8 16`: the axes, and the ranks of a machine.
"""

import argparse
import sys

from brctl.training.checkpoints.layout import Layout, parse_layout
from brctl.training.checkpoints.placement import (
    NEXT_MACHINE,
    RULES,
    Loss,
    count_losses,
    next_machine,
    place_backups,
    shifted,
)


def main() -> None:
    """Read the layout and print its table."""
    parser = argparse.ArgumentParser(description="What each rule of backup placement loses.")
    parser.add_argument("axes", help="fastest first, as tp=8,dp=32,pp=8 or tp=8,cp=2,dp=16,pp=8")
    parser.add_argument("ranks_per_machine", type=int)
    flags = parser.parse_args()
    try:
        layout = parse_layout(flags.axes, flags.ranks_per_machine)
    except ValueError as exc:
        parser.error(str(exc))
    sys.stdout.write("\n".join(describe(layout)) + "\n")


def describe(layout: Layout) -> list[str]:
    """One row a rule: group evictions that lose data, of all groups of that kind."""
    rows = [("pp+PP/2, dp+1", shifted(layout, layout.size("pp") // 2, 1))]
    rows += [(name, backups) for name, rule in RULES if (backups := rule(layout))]
    rows.append((NEXT_MACHINE, next_machine(layout)))
    chosen = place_backups(layout)
    lines = [f"{layout.world_size} ranks on {layout.machines} machines; evictions that lose data"]
    lines += [f"{name:<20}{_cells(count_losses(layout, backups))}" for name, backups in rows]
    lines.append(f"chosen: {chosen.rule}{_uncovered(chosen.uncovered)}")
    return lines


def _cells(losses: tuple[Loss, ...]) -> str:
    return "".join(f"{loss.kind} {loss.lost}/{loss.groups}".ljust(16) for loss in losses).rstrip()


def _uncovered(losses: tuple[Loss, ...]) -> str:
    if not losses:
        return "; any machine and any group may go"
    return "; not covered: " + ", ".join(f"{x.lost} of {x.groups} {x.kind}" for x in losses)


if __name__ == "__main__":
    main()
