"""What the newest answers of all nodes say together."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

Spread = Mapping[str, tuple[str, ...]]
"""A value and the nodes that have it, the most common first."""


@dataclass(frozen=True, slots=True)
class SilentNode:
    """A node that did not answer when it was asked last.

    Attributes:
        since: When it was first found so; None when it was never swept.
    """

    node: str
    why: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """The fleet beside its states.

    Attributes:
        versions: Versions by the measurement that read them.
        silent: Oldest first; never swept ones before them.
        flappers: Node, check and how often it began to fail, most often first.
    """

    hardware: Spread
    versions: Mapping[str, Spread]
    silent: tuple[SilentNode, ...]
    flappers: tuple[tuple[str, str, int], ...]
