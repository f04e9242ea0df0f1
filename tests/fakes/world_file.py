"""The state of the fake cluster: one JSON file under a lock."""

import fcntl
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EMPTY: dict[str, Any] = {
    "cordons": {},
    "labels": {},
    "guests": {},
    "reservations": {},
    "nodes": ["n1", "n2", "n3", "n4"],
    "ranks": {"0": "first", "1": "first", "2": "first", "3": "first"},
    "dead": ["n3"],
    "sick": [],
    "spare": [],
    "step": 40,
    "seconds": 0.0,
    "effects": [],
    "still_true": True,
    "stalled": None,
}


class WorldFile:
    """The cluster as JSON, changed under a lock; `effects` lists every real change in order.

    With KILL_AFTER_EFFECT=n the process dies right after the change that made it n of them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            path.write_text(json.dumps(EMPTY))

    def read(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self._path.read_text())
        return data

    @contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            data = self.read()
            yield data
            partial = self._path.with_suffix(".part")
            partial.write_text(json.dumps(data))
            partial.rename(self._path)
            if len(data["effects"]) >= int(os.environ.get("KILL_AFTER_EFFECT", "1000")):
                os.kill(os.getpid(), signal.SIGKILL)
