"""Where a pool of standbys stands beside a job's groups, and where it should."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brctl.playbook.placement.domains import Domains
from brctl.playbook.placement.spread import GroupPlaces


@dataclass(frozen=True, slots=True)
class PoolPlace:
    """A pool and the groups that are kept whole first.

    Attributes:
        axis: Of these groups.
        standing: Standbys in each domain.
        unlabelled: Standbys whose domain nobody knows.
        groups: How many groups there are.
        without: Groups with no standby in a domain they are in: losing a node splits them.
        wanted: Domains where one more standby each would leave the fewest without, best first.
    """

    level: str
    axis: str
    standing: Mapping[str, int]
    unlabelled: tuple[str, ...]
    groups: int
    without: int
    wanted: tuple[str, ...]

    @property
    def block(self) -> int:
        """The most standbys in one domain: what a group that is evicted whole can get."""
        return max(self.standing.values(), default=0)


def pool_place(
    layout: GroupPlaces,
    nodes: Sequence[str],
    standbys: Sequence[str],
    domains: Domains,
    losses: int,
) -> PoolPlace | None:
    """How a pool stands; None where nobody knows, or no group spans nodes.

    Args:
        layout: The job's groups.
        nodes: Its nodes in rank order.
        standbys: The pool.
        domains: Of both.
        losses: Nodes that may be lost at once: so many domains are named at most.
    """
    if not domains.level or not layout.axes:
        return None
    standing = Counter(domains.of(node) for node in standbys if domains.known(node))
    rows = [set(domains.named([nodes[place] for place in row])) for row in layout.rows]
    bare = [row for row in rows if row.isdisjoint(standing)]
    return PoolPlace(
        domains.level,
        layout.axes[0].axis,
        dict(sorted(standing.items())),
        tuple(node for node in standbys if not domains.known(node)),
        len(rows),
        len(bare),
        _most_wanted(bare, losses),
    )


def _most_wanted(bare: Sequence[set[str]], limit: int) -> tuple[str, ...]:
    """Domains that most groups without a standby are in, each time of those still without."""
    left, wanted = list(bare), list[str]()
    while len(wanted) < limit and (counts := Counter(d for row in left for d in sorted(row))):
        wanted.append(max(sorted(counts), key=lambda d: counts[d]))
        left = [row for row in left if wanted[-1] not in row]
    return tuple(wanted)
