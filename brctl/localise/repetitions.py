"""How often a test that fails only sometimes has to be repeated, and what its passing excludes."""

import math

CERTAIN = 1.0


def repetitions_for(chance: float, miss: float) -> int:
    """Repetitions after which a fault of this chance a repetition was missed this seldom.

    Examples:
        >>> repetitions_for(0.1, 0.01)
        44
        >>> repetitions_for(1.0, 0.01)
        1

    Raises:
        ValueError: One of them is no probability that could be reached.
    """
    if not 0.0 < chance <= CERTAIN or not 0.0 < miss < CERTAIN:
        raise ValueError(f"no number of repetitions sees p = {chance:g} but for {miss:g}")
    return 1 if chance == CERTAIN else math.ceil(math.log(miss) / math.log1p(-chance))


def least_chance(repetitions: int, miss: float) -> float:
    """The smallest chance a repetition that so many clean repetitions exclude but for `miss`.

    Examples:
        >>> round(least_chance(44, 0.01), 3)
        0.099
        >>> least_chance(0, 0.01)
        1.0
    """
    return CERTAIN if repetitions < 1 else 1.0 - miss ** (1.0 / repetitions)
