"""Where all ranks stand as one merged tree, ranks folded on each branch; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from brctl.model.jobs.hang import StackAnalysis
from brctl.model.nodeset import fold
from brctl.tui.rows.row import Row, Tone, blank, heading, paragraph, row, safe
from brctl.view.job.stacks import folded_ranks


@dataclass(slots=True)
class StackBranch:
    """One frame, the ranks that passed it, and what they called from there."""

    frame: str
    ranks: list[int] = field(default_factory=list)
    calls: dict[str, "StackBranch"] = field(default_factory=dict)


def merge(result: StackAnalysis) -> StackBranch:
    """The prefix tree of all stacks; ranks without one are in no branch."""
    root = StackBranch("")
    for group in result.groups:
        here = root
        for frame in reversed(group.stack):
            here = here.calls.setdefault(frame, StackBranch(frame))
            here.ranks += group.ranks
    return root


def stack_rows(result: StackAnalysis, width: int) -> list[Row]:
    """The verdict of the stacks, then the tree; branches of outliers are marked."""
    suspects = fold(result.suspect_nodes) or "nobody"
    rows = [row(("suspect ", Tone.HEAD), (safe(suspects, 200), Tone.WARN))]
    rows += paragraph("why     ", safe(result.reason, 600), width)
    if result.silent:
        text = f"ranks {folded_ranks(result.silent)} gave no stack"
        rows.append(row(("? silent ", Tone.UNKNOWN), text))
    rows += [row((safe(note, 300), Tone.DIM)) for note in result.notes[:5]]
    rows += [blank(), heading("tree, outermost frame first; ! leads to an outlier only")]
    return [*rows, *_branches(merge(result), frozenset(result.outliers), 0)]


def _branches(branch: StackBranch, outliers: frozenset[int], depth: int) -> list[Row]:
    rows: list[Row] = []
    for call in sorted(branch.calls.values(), key=lambda b: -len(b.ranks)):
        chain = _straight(call)
        odd = set(call.ranks) <= outliers
        ranks = folded_ranks(tuple(sorted(set(call.ranks))))
        mark = ("! ", Tone.WARN) if odd else ("  ", Tone.DIM)
        text = safe(" > ".join(b.frame for b in chain), 300)
        label = (f"{len(set(call.ranks))} {ranks}  ", Tone.WARN if odd else Tone.HEAD)
        rows.append(row(mark, "  " * depth, label, text))
        rows += _branches(chain[-1], outliers, depth + 1)
    return rows


def _straight(branch: StackBranch) -> Sequence[StackBranch]:
    """Frames that all ranks of a branch share go on one line."""
    chain = [branch]
    while len(chain[-1].calls) == 1:
        (only,) = chain[-1].calls.values()
        if len(only.ranks) != len(chain[-1].ranks):
            break
        chain.append(only)
    return chain
