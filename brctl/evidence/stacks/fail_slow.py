"""Who slows a job that still moves: the paper's five rounds.

Source: ByteRobust section 5: aggregate every 10 s; each round flags the parallel group with the
most outliers; after 5 rounds the group flagged most often degrades the job. The paper leaves ties
open: here every group with equally many outliers is flagged in a round, and groups with equally
many flags at the end are all returned, smallest first, for a person or the next round to decide.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from brctl.evidence.stacks.analyse import analyse_stacks
from brctl.evidence.stacks.snapshot import RankStack
from brctl.model.jobs.hang import ParallelGroup, StackAnalysis
from brctl.model.jobs.job import Job

ROUNDS = 5
ROUND_S = 10.0


def most_flagged(rounds: Sequence[Iterable[RankStack]], job: Job) -> tuple[ParallelGroup, ...]:
    """The groups flagged in most rounds; empty when no round had an outlier."""
    flags: Counter[ParallelGroup] = Counter()
    for stacks in rounds:
        flags.update(_flagged(analyse_stacks(stacks, job), job))
    if not flags:
        return ()
    most = max(flags.values())
    winners = [group for group, count in flags.items() if count == most]
    return tuple(sorted(winners, key=lambda g: (len(g.nodes), len(g.ranks), g.ranks)))


def _flagged(analysis: StackAnalysis, job: Job) -> list[ParallelGroup]:
    """The groups with most outliers in one round."""
    counts: Counter[ParallelGroup] = Counter()
    for axis, size in job.axes:
        if size < 2:
            continue
        for ranks in job.groups(axis):
            inside = len(set(ranks) & set(analysis.outliers))
            if inside:
                nodes = tuple(dict.fromkeys(job.node_of(rank) for rank in ranks))
                counts[ParallelGroup(axis, ranks, nodes)] = inside
    most = max(counts.values(), default=0)
    return [group for group, inside in counts.items() if inside == most]
