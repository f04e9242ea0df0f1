"""Dump PyTorch's flight recorder when no collective has begun or ended for too long.

NCCL's own watchdog does this on real clusters; gloo has the recorder and no watchdog. A thread
writes, because the main one sits in C++ when it matters. A stopped process cannot dump, which
`brctl flight-recorder analyse` takes for what it is.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

PREFIX_VARIABLE = "TORCH_FR_DUMP_TEMP_FILE"
_LOOK_EVERY_S = 0.5


class FlightWatch:
    """Writes `<prefix><rank>` once for every pause longer than `after_s`."""

    def __init__(
        self,
        target: Path,
        after_s: float,
        dump: Callable[[], bytes],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._after_s = after_s
        self._dump = dump
        self._clock = clock
        self._since: float | None = clock()

    def touch(self) -> None:
        """A collective begins or ended just now."""
        self._since = self._clock()

    def look(self) -> None:
        """Dump if the pause is too long; at most once a pause."""
        since = self._since
        if since is None or self._clock() - since <= self._after_s:
            return
        self._since = None
        try:
            partial = self._target.with_name(self._target.name + ".new")
            partial.write_bytes(self._dump())
            partial.replace(self._target)
        except OSError as exc:
            sys.stderr.write(f"brctl: the flight recorder is not dumped: {exc}\n")

    def start(self) -> None:
        """Look twice a second for as long as the process lives."""
        self._target.unlink(missing_ok=True)
        threading.Thread(target=self._run, name="flight-watch", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(_LOOK_EVERY_S)
            self.look()


def dump_target(rank: int, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where this rank dumps; None when the job does not ask for dumps."""
    prefix = environ.get(PREFIX_VARIABLE)
    return Path(f"{prefix}{rank}") if prefix else None


def recorder_dump() -> bytes:
    """All recorded collectives of this process as JSON, without stack frames."""
    # There is no public name for it; torchrun's own debug pages call the same one.
    from torch._C import _distributed_c10d as c10d

    text = c10d._dump_fr_trace_json(True, False)  # type: ignore[attr-defined]  # not in torch's stubs
    return text if isinstance(text, bytes) else str(text).encode()
