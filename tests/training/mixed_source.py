"""Data with a state, as real loaders have: two shards, mixture weights, a shuffle buffer of 256."""

import random

BUFFER, BATCH = 256, 8
WEIGHTS = (0.7, 0.3)


class MixedSource:
    """Batches of sample ids; `shard * 1e6 + index` in an order only the whole state can repeat."""

    def __init__(self, seed: int = 7, batches: int = 400) -> None:
        self._rng = random.Random(seed)
        self._next = [0, 0]
        self._buffer: list[int] = []
        self._left = batches

    def _draw(self) -> int:
        shard = self._rng.choices((0, 1), WEIGHTS)[0]
        self._next[shard] += 1
        return shard * 1_000_000 + self._next[shard]

    def _sample(self) -> int:
        while len(self._buffer) < BUFFER:
            self._buffer.append(self._draw())
        return self._buffer.pop(self._rng.randrange(len(self._buffer)))

    def __next__(self) -> list[int]:
        if self._left == 0:
            raise StopIteration
        self._left -= 1
        return [self._sample() for _ in range(BATCH)]

    def state_dict(self) -> object:
        return (self._rng.getstate(), list(self._next), list(self._buffer), self._left)

    def load_state_dict(self, state: object) -> None:
        assert isinstance(state, tuple)
        rng, following, buffer, left = state
        self._rng.setstate(rng)
        self._next, self._buffer, self._left = list(following), list(buffer), left


class ForgetfulSource(MixedSource):
    """As with `iter()` before `load_state_dict`: it starts at its first sample and says nothing."""

    def load_state_dict(self, state: object) -> None:
        """Taken, and without effect."""


def loss_of(batches: list[list[int]]) -> float:
    """What a model would have learned: any other sample or order gives another number."""
    weight = 0.0
    for batch in batches:
        for sample in batch:
            weight += 0.01 * ((sample % 97) / 97.0 - weight)
    return weight
