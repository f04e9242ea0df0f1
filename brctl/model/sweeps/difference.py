"""How a few nodes differ from many that should be the same."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that one node has unlike the majority.

    Attributes:
        value: The node's own values, several when its devices differ; "absent" for none.
        reference: The majority's.
    """

    node: str
    name: str
    value: str
    reference: str


@dataclass(frozen=True, slots=True)
class Split:
    """One thing without a majority: who is the odd one cannot be told.

    Attributes:
        parts: Value and the nodes that have it, largest part first.
    """

    name: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Nodes compared with each other.

    Attributes:
        reference: Nodes that are as the majority in everything that was compared.
        compared: Names of the readings that were compared.
        silent: Node and why nothing of it, or not all, could be compared.
    """

    reference: tuple[str, ...]
    differences: tuple[Difference, ...] = ()
    splits: tuple[Split, ...] = ()
    compared: tuple[str, ...] = ()
    silent: Sequence[tuple[str, str]] = ()
