"""The newest steps of one rank, in numbers of its own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankHistory:
    """Consecutive steps, oldest first; every series is as long as the others, or empty.

    Attributes:
        first: Number of the first step.
        load_s: Waiting for the batch.
        compute_s: Forward and backward, before the first collective.
        wait_s: In collectives.
        cost: What the batch costs to compute, in the job's own unit; empty where it does not say.
        source: Where its samples come from, as the job calls it.
    """

    first: int
    load_s: tuple[float, ...]
    compute_s: tuple[float, ...]
    wait_s: tuple[float, ...]
    cost: tuple[float, ...] = ()
    source: str = ""

    def part(self, first: int, last: int) -> "RankHistory":
        """The steps from one number to another, which must be among them."""
        cut = slice(first - self.first, last - self.first + 1)
        return RankHistory(
            first, self.load_s[cut], self.compute_s[cut], self.wait_s[cut], self.cost[cut],
            self.source,
        )  # fmt: skip

    @property
    def last(self) -> int:
        """Number of the last step."""
        return self.first + len(self.compute_s) - 1
