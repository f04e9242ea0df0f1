"""The ledger of one rank: a line a step of what it was given and how long it took.

`ledger-00003.ndjson` beside the progress file. Two files of bounded size, so that the newest
thousands of steps are always there: a restart compares what it replays with what was run before.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

LIMIT_BYTES = 1 << 20


class StepLedger:
    """Appends whole lines; the older file has the lines before."""

    def __init__(self, directory: Path, rank: int) -> None:
        self._path = directory / f"ledger-{rank:05d}.ndjson"

    def append(self, row: Mapping[str, object]) -> None:
        """Add one step.

        Raises:
            OSError: It cannot be written.
        """
        line = json.dumps({key: _short(value) for key, value in row.items() if value is not None})
        with self._path.open("a") as stream:
            stream.write(line + "\n")
            full = stream.tell() > LIMIT_BYTES
        if full:
            os.replace(self._path, self._path.with_suffix(".old.ndjson"))


def _short(value: object) -> object:
    return round(value, 5) if isinstance(value, float) else value
