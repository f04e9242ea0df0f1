"""Fill slots without torch; run as a program it writes step after step until it is killed.

python -m tests.training.checkpoints.filler FILE STEP
"""

import sys
from pathlib import Path

from brctl.training.checkpoints.slots import (
    BLOCK_BYTES,
    PAGE_BYTES,
    Header,
    Slot,
    SlotFile,
    SlotState,
)

CAPACITY = BLOCK_BYTES + PAGE_BYTES
PAYLOAD = CAPACITY - 100


def header(
    step: int, rank: int = 0, job: str = "toy", layout: str = "l", attempt: int = 1
) -> Header:
    return Header(job, layout, attempt, rank, 2, step, PAYLOAD, PAYLOAD - 10)


def fill(
    slot: Slot, step: int, job: str = "toy", layout: str = "l", rank: int = 0, attempt: int = 1
) -> None:
    """Write a whole and checked copy, in the order a rank and its helper do."""
    slot.state = SlotState.WRITING
    slot.payload[:PAYLOAD] = bytes([step % 251]) * PAYLOAD
    slot.write_header(header(step, rank, job, layout, attempt))
    slot.state = SlotState.COPIED
    slot.add_checksums()


def main() -> None:
    slots, step = SlotFile.open(Path(sys.argv[1])), int(sys.argv[2])
    sys.stdout.write("\n")
    sys.stdout.flush()
    while True:
        step += 1
        fill(slots.slots[step % 2], step)


if __name__ == "__main__":
    main()
