"""Faults inside a rank of the lab's job, read live from the file BRCTL_LAB_FAULTS names.

The file is one JSON object. `local_rank` says whom it means (default 0); then any of

    hang          true: sleep for ever before the next all-reduce
    slow_s        seconds to lose in every forward pass
    nan           true: this rank's loss becomes NaN
    crash         true: the next batch holds a token the model does not know, once
    mismatch      true: the next collective is a barrier where the others average gradients, once
    cuda_error    text: fail as PyTorch does when CUDA reports that error
    loader_hung   true: the loader's worker computes for ever on its next sample, once
    loader_slow_s seconds the loader's worker takes longer for every sample
    loader_skew   true: this rank's batches are up to five times as long as the others'
    loader_rewound batches that this rank's loader state lags behind in checkpoints
    loader_source path the loader's worker reads before its next sample

What strikes the ranks of all nodes in the same step is in the object `job`:

    nan_from      step from which on the code makes NaN of every loss
    bad_batch     [step, whose]: this step's batch, of this rank or replica, has all labels masked
    jump_at       step whose update is a thousand times too large

Outside the lab the variable is not set and nothing here does anything.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

RATE_FACTOR = 1000.0

_CUDA_TEXT = """\
CUDA error: {what}
CUDA kernel errors might be asynchronously reported at some other API call, \
so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""


def read_shard(path: str) -> bytes:
    """Read a file of samples, however long its file system takes."""
    return Path(path).read_bytes()


def decode_for_ever() -> None:
    """A transform that never comes to an end with one sample."""
    while True:
        pass


class Faults:
    """The faults of one rank, as the file says now."""

    def __init__(self, path: Path | None, local_rank: int) -> None:
        self._path = path
        self._local_rank = local_rank
        self._stamp: tuple[int, int, int] | None = None
        self._now: Mapping[str, object] = {}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Faults":
        path = environ.get("BRCTL_LAB_FAULTS")
        return cls(Path(path) if path else None, int(environ.get("LOCAL_RANK", "0")))

    def refresh(self) -> None:
        """Read the file again if it changed."""
        if self._path is None:
            return
        try:
            status = self._path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if stamp != self._stamp:
                self._now = json.loads(self._path.read_text())
                self._stamp = stamp
        except (OSError, ValueError):
            return

    def strike_forward(self) -> None:
        """Fail or lose time where a broken GPU would."""
        what = self._value("cuda_error")
        if what is not None:
            raise RuntimeError(_CUDA_TEXT.format(what=what))
        slow_s = self._value("slow_s")
        if isinstance(slow_s, int | float):
            time.sleep(slow_s)

    def strike_load(self) -> None:
        """Keep a loader's worker from its sample, as its code or its storage would."""
        self.refresh()
        slow_s, path = self._value("loader_slow_s"), self._value("loader_source")
        if isinstance(slow_s, int | float):
            time.sleep(slow_s)
        if isinstance(path, str):
            read_shard(path)
        if self._once("loader_hung"):
            decode_for_ever()

    def batch_length(self, step: int) -> float:
        """How long a batch is, of the usual one: uneven lengths differ from step to step."""
        return 1.0 + step * 3 % 5 if self._value("loader_skew") is True else 1.0

    def batches_behind(self) -> int:
        """How old the loader state is that this rank saves: a restart repeats so many batches."""
        behind = self._value("loader_rewound")
        return behind if isinstance(behind, int) else 0

    def poisons_loss(self, step: int) -> bool:
        since = self._of_job("nan_from")
        return self._value("nan") is True or (isinstance(since, int) and step >= since)

    def masks_labels(self, step: int, whose: int) -> bool:
        """Whether the batch of this rank or replica has nothing to learn from in this step."""
        return self._of_job("bad_batch") == [step, whose]

    def rate_factor(self, step: int) -> float:
        """By how much the learning rate is too large in this step."""
        return RATE_FACTOR if self._of_job("jump_at") == step else 1.0

    def breaks_batch(self) -> bool:
        """Whether this batch is to hold nonsense; true once, so that a restart gets past it."""
        return self._once("crash")

    def takes_another_collective(self) -> bool:
        """Whether this step begins with a collective that the other ranks do not enter; once."""
        return self._once("mismatch")

    def strike_before_all_reduce(self) -> None:
        while self._value("hang") is True:
            time.sleep(3600)

    def _value(self, name: str) -> object:
        if self._now.get("local_rank", 0) != self._local_rank:
            return None
        return self._now.get(name)

    def _of_job(self, name: str) -> object:
        job = self._now.get("job")
        return job.get(name) if isinstance(job, dict) else None

    def _once(self, name: str) -> bool:
        if self._value(name) is not True:
            return False
        self._forget(name)
        return True

    def _forget(self, name: str) -> None:
        if self._path is not None:
            partial = self._path.with_suffix(".new")
            partial.write_text(json.dumps({k: v for k, v in self._now.items() if k != name}))
            partial.replace(self._path)
