"""The row of the kernel's table that speaks on a line of a node's kernel log."""

from functools import cache

from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signature import Signature
from brctl.evidence.logs.signatures import harmless, kernel


def find_row(message: str, *, of_driver: bool) -> Signature | None:
    """What a message means; None for a harmless one, or one that nobody has classed.

    Args:
        message: The line without time and sender.
        of_driver: Ask the rows of the GPU driver instead of those of the host.
    """
    index = _index(of_driver=of_driver)
    matched = LineReader("kernel", index).match(message, 1, index.anchors_on(message))
    return matched[0][0] if matched else None


@cache
def _index(*, of_driver: bool) -> LineIndex:
    rows = kernel.DRIVER if of_driver else kernel.HOST
    return LineIndex((*harmless.SIGNATURES, *rows))
