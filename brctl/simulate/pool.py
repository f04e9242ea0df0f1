"""Standbys over time: one that was taken is replaced after a while."""

from heapq import heappop, heappush

from brctl.simulate.fleet import US


class RefilledPool:
    """So many standbys, and when those come back that were taken."""

    def __init__(self, size: int, refill_s: float) -> None:
        self.ready = size
        self._refill_us = round(refill_s * US)
        self._coming: list[int] = []

    def look(self, now_us: int) -> int:
        """Standbys that are ready now."""
        while self._coming and self._coming[0] <= now_us:
            heappop(self._coming)
            self.ready += 1
        return self.ready

    def take(self, wanted: int, now_us: int) -> int:
        """Take as many as there are, at most what is wanted."""
        taken = min(wanted, self.look(now_us))
        self.ready -= taken
        for _ in range(taken):
            heappush(self._coming, now_us + self._refill_us)
        return taken
