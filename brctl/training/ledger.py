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
        self._is_new = True

    def append(self, row: Mapping[str, object]) -> None:
        """Add one step; the first of a process is marked, for a restart need not go back a step.

        Raises:
            OSError: It cannot be written.
        """
        marked = {**row, "start": True if self._is_new else None}
        line = json.dumps({k: _short(value) for k, value in marked.items() if value is not None})
        with self._path.open("a") as stream:
            stream.write(line + "\n")
            full = stream.tell() > LIMIT_BYTES
        self._is_new = False
        if full:
            os.replace(self._path, self._path.with_suffix(".old.ndjson"))


def _short(value: object) -> object:
    return round(value, 5) if isinstance(value, float) else value
