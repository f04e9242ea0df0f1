"""A number of a rank that is wrong and looks right, as the rank's own checks found it."""

from dataclasses import dataclass
from enum import StrEnum


class WrongKind(StrEnum):
    """What was compared with what."""

    REPLICA = "replica"
    """A tensor with those that must have the same bits."""
    PRODUCT = "product"
    """A matrix product with a smaller one that must agree."""
    SUM = "sum"
    """What a reduction gave with what the ranks had put in."""


@dataclass(frozen=True, slots=True)
class WrongNumber:
    """The first finding of one kind on one rank.

    Attributes:
        place: The tensor or the layer; "" for a reduction.
        count: Steps that showed it so far.
        axis: The group whose ranks were compared; "" for a product.
        ranks: Who differs from most; where there is no majority, those that differ at all.
        of: Ranks compared.
        has_majority: Whether more than half of them agree.
    """

    kind: WrongKind
    step: int
    place: str = ""
    count: int = 1
    axis: str = ""
    ranks: tuple[int, ...] = ()
    of: int = 0
    has_majority: bool = False
