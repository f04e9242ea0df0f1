"""Most nodes, or all behind one gateway, were not reached: what that says of the way to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class UnreachedTogether:
    """More than half of the nodes that were asked, or all behind a gateway, gave no contact.

    Attributes:
        nodes: Those that were not reached, in the order they were asked.
        asked: How many were asked, the others included.
        reasons: Why, in words, with how many nodes each; most first.
        shared: What all of them have and no node that was reached has, `rack r3`; "" for none.
        settle: Commands that tell why, likeliest reason first.
    """

    nodes: tuple[str, ...]
    asked: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    shared: str = ""
    settle: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is wrong, in one line."""
        many = f"{len(self.nodes)} of {self.asked} nodes are not reached from this machine"
        if self.shared:
            return f"{many}: they share {self.shared}, look at the way there"
        if len(self.nodes) == self.asked:
            return f"{many}: look at its way to them, not at the nodes"
        return f"{many}: look at its way to them and at what they share, not at single nodes"

    @property
    def why(self) -> str:
        """The reasons with their numbers."""
        return "; ".join(f"{count} x {reason}" for reason, count in self.reasons.items())
