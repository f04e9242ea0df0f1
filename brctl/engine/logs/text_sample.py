"""Keeps the two ends of an input while it streams by: what leads are drawn from, bounded."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brctl.evidence.logs.event import clean

END_BYTES = 64 << 10
"""Bytes kept of each end: hundreds of lines, and little beside one block."""


@dataclass(slots=True)
class TextSample:
    """The first and the last bytes of one input, and how many lines it has.

    Attributes:
        newlines: Counted by whoever feeds it: the search for anchors has the number already.
    """

    newlines: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytes = b""
    _size: int = 0

    def feed(self, block: bytes) -> None:
        """Keep what the next block has of the two ends."""
        self._size += len(block)
        taken = min(len(block), END_BYTES - len(self._head))
        self._head += block[:taken]
        self._tail = (self._tail + block[max(taken, len(block) - END_BYTES) :])[-END_BYTES:]

    def lines(self) -> Mapping[int, str]:
        """Lines of both ends by number from 1; one cut in two at either edge is left out."""
        head = bytes(self._head)
        if self._size == len(head) + len(self._tail):
            return _numbered((head + self._tail).split(b"\n"), 1)
        tail = self._tail.split(b"\n")[1:]
        return {
            **_numbered(head.split(b"\n")[:-1], 1),
            **_numbered(tail, self.newlines + 2 - len(tail)),
        }


def _numbered(lines: list[bytes], first: int) -> dict[int, str]:
    cleaned = ((number, clean(raw)) for number, raw in enumerate(lines, first))
    return {number: text for number, text in cleaned if text.strip()}
