"""Finds the lines worth reading: one multi-pattern pass over big blocks, never line by line.

Two engines with one meaning: Hyperscan, and the standard `re` where Hyperscan has no wheel.
`tests/engine/logs/test_anchor_scan.py` proves them equal; decisions/0060 has the figures.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

LONG_LINE_BYTES = 1 << 20
"""A longer line is cut into pieces: one rank may print a gigabyte without a newline."""

SHOWN_BEFORE = 512
"""Bytes kept before a hit deep inside a long line."""

RECORD_BYTES = 16 << 10
"""Bytes kept of a JSON record: a traceback stands in one string of it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line with at least one anchor; `anchors` is None when the engine does not say which."""

    number: int
    raw: bytes
    anchors: tuple[str, ...] | None


class AnchorEngine(Protocol):
    """Finds anchors in a block."""

    def hits(self, block: bytes) -> list[tuple[int, str | None]]:
        """(offset after the hit, anchor or None) in rising order; overlapping hits included."""
        ...


class HyperscanEngine:
    """Intel's multi-pattern matcher: all anchors in one pass at gigabytes a second."""

    def __init__(self, anchors: Sequence[str]) -> None:
        import hyperscan

        self._anchors = tuple(anchors)
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=[re.escape(a).encode() for a in self._anchors],
            ids=list(range(len(self._anchors))),
            elements=len(self._anchors),
            flags=[hyperscan.HS_FLAG_CASELESS] * len(self._anchors),
        )

    def hits(self, block: bytes) -> list[tuple[int, str | None]]:
        """See AnchorEngine."""
        found: list[tuple[int, str | None]] = []
        names = self._anchors

        def on_match(number: int, start: int, end: int, flags: int, context: object) -> None:
            found.append((end, names[number]))

        self._database.scan(block, match_event_handler=on_match)
        return found


class ReEngine:
    """The standard library: correct everywhere, some hundred times slower."""

    def __init__(self, anchors: Sequence[str]) -> None:
        self._pattern = re.compile(b"|".join(re.escape(a.encode()) for a in anchors))

    def hits(self, block: bytes) -> list[tuple[int, str | None]]:
        """See AnchorEngine."""
        return [(match.end(), None) for match in self._pattern.finditer(block.lower())]


def open_engine(anchors: Sequence[str]) -> AnchorEngine:
    """Hyperscan where it can be imported, else `re`."""
    try:
        return HyperscanEngine(anchors)
    except ImportError:
        return ReEngine(anchors)


@dataclass(slots=True)
class AnchorScan:
    """Cuts blocks at line ends and yields candidate lines; holds at most one block and one line."""

    engine: AnchorEngine
    long_lines: int = 0
    _carry: bytes = b""
    _number: int = 1
    _anchors: dict[str, None] = field(default_factory=dict)

    def feed(self, block: bytes) -> Iterator[Candidate]:
        """Candidates of the lines that end in this block."""
        data = self._carry + block if self._carry else block
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) > LONG_LINE_BYTES:
            self.long_lines += 1
            cut = len(data)
        self._carry = data[cut:]
        yield from self._scan(data[:cut])

    @property
    def newlines(self) -> int:
        """Newlines read so far; all of them after `finish`."""
        return self._number - 1

    def finish(self) -> Iterator[Candidate]:
        """Candidates of a last line without a newline."""
        data, self._carry = self._carry, b""
        yield from self._scan(data)

    def _scan(self, data: bytes) -> Iterator[Candidate]:
        counted = 0
        line_end = -1
        start = 0
        anchors: dict[str, None] = {}
        known = True
        for offset, anchor in self.engine.hits(data):
            if offset - 1 >= line_end:
                if line_end >= 0:
                    yield self._candidate(data, start, line_end, anchors, known=known)
                start, line_end = _bounds(data, offset - 1)
                self._number += data.count(b"\n", counted, start)
                counted, anchors, known = start, {}, True
            if anchor is None:
                known = False
            else:
                anchors.setdefault(anchor)
        if line_end >= 0:
            yield self._candidate(data, start, line_end, anchors, known=known)
        self._number += data.count(b"\n", counted)

    def _candidate(
        self, data: bytes, start: int, end: int, anchors: dict[str, None], *, known: bool
    ) -> Candidate:
        return Candidate(self._number, data[start:end], tuple(anchors) if known else None)


def _bounds(data: bytes, at: int) -> tuple[int, int]:
    """Start and end of the line around an offset; progress bars end theirs by carriage return."""
    start = max(data.rfind(b"\n", 0, at), data.rfind(b"\r", max(0, at - SHOWN_BEFORE), at)) + 1
    start = max(start, at - SHOWN_BEFORE)
    newline = data.find(b"\n", at)
    limit = len(data) if newline < 0 else newline
    back = data.find(b"\r", at, min(limit, at + SHOWN_BEFORE))
    end = back if back >= 0 else limit
    if end - at > 2 * SHOWN_BEFORE:
        is_record = data.find(b'{"', start, start + SHOWN_BEFORE) >= 0
        end = min(end, at + (RECORD_BYTES if is_record else 2 * SHOWN_BEFORE))
    return start, end
