"""The two engines find the same lines, and blocks may be cut anywhere."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brctl.engine.logs.anchor_scan import (
    LONG_LINE_BYTES,
    AnchorEngine,
    AnchorScan,
    HyperscanEngine,
    ReEngine,
)

ANCHORS = ("xid", "fallen off", "loss", "error:", "ss: n")
HYPERSCAN = HyperscanEngine(ANCHORS)
RE = ReEngine(ANCHORS)
WORDS = st.sampled_from(
    [
        b"Xid",
        b"XID 79",
        b"fallen off",
        b"loss: nan",
        b"plain words",
        b"",
        b"\xff\x00",
        b"error:",
        b"\r",
    ]
)
TEXT = st.lists(st.lists(WORDS, max_size=4).map(b" ".join), max_size=12).map(b"\n".join)


def scan(engine: AnchorEngine, blocks: Sequence[bytes]) -> list[tuple[int, bytes]]:
    scanner = AnchorScan(engine)
    found = [c for block in blocks for c in scanner.feed(block)]
    found += scanner.finish()
    assert scanner.newlines == sum(block.count(b"\n") for block in blocks)
    return [(candidate.number, candidate.raw) for candidate in found]


@settings(max_examples=300)
@given(TEXT)
def test_both_engines_find_the_same_lines(text: bytes) -> None:
    """What the fast engine finds, the standard library finds, with the same line numbers."""
    assert scan(HYPERSCAN, [text]) == scan(RE, [text])


@settings(max_examples=200)
@given(TEXT, st.lists(st.integers(0, 200), max_size=6))
def test_where_a_block_ends_does_not_matter(text: bytes, cuts: list[int]) -> None:
    """A file read in any pieces gives the same candidates."""
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    blocks = [text[a:b] for a, b in pairwise(edges)]
    assert scan(HYPERSCAN, blocks) == scan(HYPERSCAN, [text])


@pytest.mark.parametrize("engine", [HYPERSCAN, RE], ids=["hyperscan", "re"])
def test_line_numbers_are_the_files_own(engine: AnchorEngine) -> None:
    """Numbers count newlines from 1, so that an editor finds the line."""
    text = b"a\nb\nXid one\nc\n\nloss two\n"
    assert scan(engine, [text]) == [(3, b"Xid one"), (6, b"loss two")]


def test_a_progress_bar_is_cut_at_carriage_returns() -> None:
    """A bar rewrites its line ten thousand times; only the part with the anchor is read."""
    text = b"\r".join([b" 3%|#"] * 1000 + [b"error: boom", b" 4%|#"]) + b"\n"
    assert scan(HYPERSCAN, [text]) == [(1, b"error: boom")]


def test_a_line_without_end_is_read_in_bounded_pieces() -> None:
    """Sixteen mebibytes without a newline: found, and never held whole."""
    scanner = AnchorScan(HYPERSCAN)
    found = []
    for number in range(16):
        block = (
            b"x" * LONG_LINE_BYTES if number != 9 else b"y" * 500_000 + b" Xid 79 " + b"z" * 548_000
        )
        found += list(scanner.feed(block))
        assert len(scanner._carry) <= 2 * LONG_LINE_BYTES
    found += list(scanner.finish())
    assert len(found) == 1
    assert b"Xid 79" in found[0].raw
    assert len(found[0].raw) < 10_000
    assert scanner.long_lines > 0
