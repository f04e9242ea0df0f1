"""Chance without a state: a number depends on its seed and name, never on what was asked before.

So a policy that asks for one more number moves no fault and no other policy's numbers.
"""

from hashlib import blake2b
from math import log

_RANGE = float(1 << 64)


def unit(seed: int, *name: str | int) -> float:
    """A number between 0 and 1, evenly spread, for this seed and name."""
    digest = blake2b(repr((seed, name)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / _RANGE


def exponential(mean: float, seed: int, *name: str | int) -> float:
    """A waiting time of this mean."""
    return -mean * log(1.0 - unit(seed, *name))
