"""Nothing that a node, a gateway or a scheduler sends raises, hangs or fills the memory."""

import contextlib
import random
import time
import tracemalloc
import zlib

import pytest

from tests.hostile.inputs import POISON
from tests.hostile.readers import READERS

COUNT = 500
DEEP_COUNT = 10_000
SLOWEST_S = 5.0
"""For one input of at most a few hundred kilobytes; on a busy machine too."""
MEMORY_FACTOR = 60
MEMORY_BYTES = 16 << 20


@pytest.mark.parametrize("count", [COUNT, pytest.param(DEEP_COUNT, marks=[pytest.mark.deep])])
@pytest.mark.parametrize("name", sorted(READERS))
def test_every_input_ends_in_a_value_or_a_refusal(name: str, count: int) -> None:
    """The seed is the reader's name, so that a failure comes again."""
    reader = READERS[name]
    random_ = random.Random(zlib.crc32(name.encode()))
    for number in range(count):
        raw = reader.make(random_)
        began = time.process_time()
        try:
            with contextlib.suppress(*reader.refusals):
                reader.read(raw)
        except Exception as error:
            error.add_note(f"input {number}: {raw[:300]!r}")
            raise
        assert time.process_time() - began < SLOWEST_S, raw[:300]


@pytest.mark.parametrize("name", sorted(READERS))
def test_the_memory_is_bounded_by_the_input(name: str) -> None:
    """Neither depth nor a length that is only claimed makes a reader take gigabytes."""
    reader = READERS[name]
    random_ = random.Random(zlib.crc32(name.encode()) + 1)
    inputs = [*(poison.encode("utf-8", "replace") for poison in POISON)]
    inputs += [reader.make(random_) for _ in range(30)]
    for raw in inputs:
        tracemalloc.start()
        with contextlib.suppress(*reader.refusals):
            reader.read(raw)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY_BYTES + MEMORY_FACTOR * len(raw), raw[:300]
