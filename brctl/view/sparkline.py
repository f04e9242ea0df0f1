"""A series of numbers as one line of blocks; pure."""

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
MISSING = "·"
FLAT_RATIO = 0.05
"""A series that moves by less than this share of its height is drawn flat, not as mountains."""

IN_ASCII = str.maketrans(dict(zip(BLOCKS + MISSING + "…", "_-=+*x%#.~", strict=True)))
"""For terminals and pipes that hold nothing else: each level stays another character."""


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The newest values, one character each; a gap where nothing was measured.

    Examples:
        >>> sparkline([1.0, 2.0, None, 8.0], 10)
        '▁▂·█'
        >>> sparkline([5.0, 5.01, 5.0], 2)
        '▁▁'
    """
    shown = list(values)[-max(width, 0) :]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    span = high - low
    if span <= FLAT_RATIO * max(abs(high), abs(low)):
        span = 0.0
    return "".join(_block(value, low, span) for value in shown)


def _block(value: float | None, low: float, span: float) -> str:
    if value is None:
        return MISSING
    if span == 0.0:
        return BLOCKS[0]
    return BLOCKS[min(int((value - low) / span * len(BLOCKS)), len(BLOCKS) - 1)]
