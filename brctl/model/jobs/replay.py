"""What a rank was given again after it went back to a checkpoint."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replay:
    """The newest start of a rank beside what its ledger had before.

    Attributes:
        first: The first step of the start.
        steps: Steps compared; 0 where it had stopped right after the checkpoint.
        differs_at: The first step with another batch; None where there is none.
        off: Batches that come twice, below 0 those left out; None where nothing tells.
        samples: The same in samples; None where the job does not count them.
    """

    first: int
    steps: int
    differs_at: int | None = None
    off: int | None = None
    samples: int | None = None
