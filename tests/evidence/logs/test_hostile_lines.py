"""A line made to stall a regular expression costs milliseconds, whichever rule reads it."""

import time

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.event import TEXT_LIMIT
from brctl.evidence.logs.reader import LineIndex, LineReader

BUDGET_S = 0.25
"""Per expression on the longest line that is read; honest lines take microseconds."""

SEEDS = (
    "a", "1", " ", "[", "[x] ", "a: ", "Error: ", "nccl ", "rank 1 ", "loss: 1 ", "(a pid=1) ",
    "0000:00:00.0 ", "1234:", "x.y.", " | ", "nan ", "failed to ", "checkpoint ", "pcie ", "GPU 1 ",
    "nvlink ", "uncorrectable ", "link ", "host:1:1 [0] ", "Jan  1 00:00:00 ", "'\"", 'File "',
    "got completion ", "expected 8 gpus ", "error reading the ", "connect to ",
    "w.-", "bond0: (slave ",
)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_no_expression_runs_away(seed: str) -> None:
    """Repetition is what makes expressions explode; every rule is tried on every seed."""
    text = (seed * TEXT_LIMIT)[:TEXT_LIMIT]
    slow = {}
    for signature in SHIPPED:
        before = time.process_time()
        signature.compiled.search(text)
        spent_s = time.process_time() - before
        if spent_s > BUDGET_S:
            slow[signature.name] = spent_s
    assert slow == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_whole_line_is_read_quickly(seed: str) -> None:
    """Rank, host, exception and progress are looked for as well."""
    reader = LineReader("hostile", LineIndex(SHIPPED))
    before = time.process_time()
    reader.read(1, (seed * TEXT_LIMIT).encode())
    assert time.process_time() - before < 2.0


@pytest.mark.parametrize("row", ["net.link-down", "over.bond-slave", "over.no-path"])
def test_a_name_is_looked_for_from_its_beginning_only(row: str) -> None:
    """From each of its characters it would cost the square of its length."""
    (expression,) = (s.compiled for s in SHIPPED if s.name == row)
    for tail in LEGS:
        found = expression.search(f"kernel: bond0{tail}")
        assert (found is None) or not expression.search("w" * TEXT_LIMIT + tail)
    assert any(expression.search(f"kernel: bond0{tail}") for tail in LEGS)


LEGS = (
    ": (slave eth1): link status definitely down", ": (slave eth1): link status definitely up",
    ": remaining active paths: 1",
)  # fmt: skip
