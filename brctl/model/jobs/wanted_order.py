"""A rank order that waits for a job's next restart, and what became of it."""

from dataclasses import dataclass, replace
from datetime import datetime

Nodes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WantedOrder:
    """One wish.

    Attributes:
        id: Frozen in a run's plan, so that an approval covers no later wish.
        before: Nodes in the rank order that was looked at.
        after: The same in the order wanted.
        run: The run that took it along or dropped it; "" while it waits.
        was: The job's nodes before that run.
        target: What that run orders them to; `was` where it dropped the wish.
    """

    id: str
    before: Nodes
    after: Nodes
    by: str
    at: datetime
    run: str = ""
    was: Nodes = ()
    target: Nodes = ()

    def among(self, nodes: Nodes) -> Nodes:
        """The wanted order with nodes that came in meanwhile in the places of those that left."""
        came_for = dict(zip(self.before, nodes, strict=False))
        kept = set(nodes)
        return tuple(node if node in kept else came_for.get(node, "") for node in self.after)

    def waiting_again(self) -> "WantedOrder":
        """The wish as it was before a run took it."""
        return replace(self, run="", was=(), target=())
