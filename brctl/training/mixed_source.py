"""Data with a state, as real loaders have: two shards, mixture weights, a shuffle buffer of 256.

Only the whole state repeats the order of the samples, so a loader that comes back elsewhere shows.
"""

import random
from collections.abc import Mapping, Sequence
from typing import cast

from brctl.training.faults import Faults

WEIGHTS = (0.7, 0.3)
BUFFER, BATCH = 256, 8
_SHARD_SAMPLES = 1_000_000


class MixedSource:
    """Batches of sample numbers; no number is given to two readers, or twice to one."""

    def __init__(
        self, seed: int = 7, reader: int = 0, *, size: int = BATCH, batches: int | None = None
    ) -> None:
        """Begin at the first sample; `batches` end it."""
        self._rng = random.Random(seed * 4096 + reader)
        self._first = [(2 * reader + shard) * _SHARD_SAMPLES for shard in range(len(WEIGHTS))]
        self._size = size
        self._next = [0, 0]
        self._buffer: list[int] = []
        self._left = batches

    def _draw(self) -> int:
        shard = self._rng.choices((0, 1), WEIGHTS)[0]
        self._next[shard] += 1
        return self._first[shard] + self._next[shard]

    def _sample(self) -> int:
        while len(self._buffer) < BUFFER:
            self._buffer.append(self._draw())
        return self._buffer.pop(self._rng.randrange(len(self._buffer)))

    def __next__(self) -> list[int]:
        if self._left is not None:
            if self._left == 0:
                raise StopIteration
            self._left -= 1
        return [self._sample() for _ in range(self._size)]

    def state_dict(self) -> object:
        """Of JSON's kind, for checkpoints."""
        version, words, gauss = self._rng.getstate()
        return {
            "random": [version, list(words), gauss], "next": list(self._next),
            "buffer": list(self._buffer), "left": self._left,
        }  # fmt: skip

    def load_state_dict(self, state: object) -> None:
        kept = cast("Mapping[str, list[int]]", state)
        version, words, gauss = cast("tuple[int, Sequence[int], float | None]", kept["random"])
        self._rng.setstate((version, tuple(words), gauss))
        self._next, self._buffer = list(kept["next"]), list(kept["buffer"])
        self._left = cast("int | None", kept["left"])


class TokenSource:
    """The lab's data: a sequence of tokens for every sample of a mixed source."""

    def __init__(self, seed: int, reader: int, size: int, length: int, vocabulary: int) -> None:
        self._samples = MixedSource(seed, reader, size=size)
        self._seed, self._length, self._vocabulary = seed, length, vocabulary
        self._faults = Faults.from_environment()

    def __next__(self) -> list[list[int]]:
        self._faults.strike_load()
        return [self._sequence(sample) for sample in next(self._samples)]

    def _sequence(self, sample: int) -> list[int]:
        """An affine sequence to continue, a function of the sample alone."""
        rng = random.Random(self._seed * 1_000_003 + sample)
        factor, offset = rng.randrange(1, 6) * 2 + 1, rng.randrange(self._vocabulary)
        tokens = [rng.randrange(self._vocabulary)]
        while len(tokens) < self._length:
            tokens.append((tokens[-1] * factor + offset) % self._vocabulary)
        return tokens

    def state_dict(self) -> object:
        return self._samples.state_dict()

    def load_state_dict(self, state: object) -> None:
        self._samples.load_state_dict(state)
