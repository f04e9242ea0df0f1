"""Tell brctl how far a rank is: one small JSON file a rank, replaced at every phase change.

For use in any training job. Standard library only; nothing here slows a step that takes more than
a few milliseconds, and nothing here can stop training: a full disk, or one that does not answer for
half a minute, is reported on stderr and left out until it takes writes again.

    progress = Progress.from_environment()
    for step in range(first, last + 1):
        progress.enter("forward", step)
        ...
        progress.enter("all_reduce", step)
        ...
        progress.finish_step(step, loss=loss, grad_norm=norm, seconds=..., wait_seconds=...)

brctl reads `phase` and `phase_since` to see who hangs where, `longest_phases` to know how long an
evaluation or a save takes when nothing is wrong, `loss_finite`, `grad_finite` and their first steps
to see who computed the first NaN, and the medians of the last steps to see who is waited for and
what for. Rank 0's steps.ndjson is the job's own past, and every rank's ledger its share of it: with
`cost`, what a batch costs to compute (tokens and the sum of squared lengths, in one unit for all
ranks), brctl tells a slow GPU from a long batch. What was not measured is null, never zero.
"""

import json
import math
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from statistics import median

from brctl.training.ledger import StepLedger
from brctl.training.numbers.loss_jump import LossJump

PHASES = (
    "load", "compile", "forward", "backward", "all_reduce", "optimizer", "evaluation", "checkpoint",
    "done",
)  # fmt: skip

RECENT_STEPS = 20
"""Steps whose medians are shown: one step says little on a busy machine."""

PATIENCE_S = 30.0
"""A slow write is waited for, so that what is told last is on disk; a stuck one is left behind."""


class Progress:
    """The progress file of one rank."""

    def __init__(self, directory: Path | None, rank: int, node: str) -> None:
        self._directory = directory
        self._ledger = StepLedger(directory, rank) if directory is not None else None
        self._files = FileWork()
        self._warned = False
        self._jump = LossJump()
        self._phases: dict[str, float] = {}
        self._longest: dict[str, float] = {}
        self._recent: deque[tuple[float, float | None, float | None]] = deque(maxlen=RECENT_STEPS)
        self._state: dict[str, object] = {
            "rank": rank,
            "pid": os.getpid(),
            "node": node,
            "step": 0,
            "phase": "load",
            "phase_since": None,
            "loss": None,
            "loss_finite": None,
            "first_nonfinite_step": None,
            "local_grad_norm": None,
            "grad_finite": None,
            "first_nonfinite_grad_step": None,
            "loss_off_since": None,
            "compared_tensors": None,
            "compared_kind": None,
            "wrong_numbers": {},
            "grad_norm": None,
            "step_seconds": None,
            "wait_seconds": None,
            "recent_steps": 0,
            "recent_step_seconds": None,
            "recent_wait_seconds": None,
            "recent_load_seconds": None,
            "longest_phases": self._longest,
            "at": None,
        }

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Progress":
        """Progress of this rank as brctl started it; without BRCTL_PROGRESS_DIR it is silent."""
        directory = environ.get("BRCTL_PROGRESS_DIR")
        return cls(
            Path(directory) if directory else None,
            int(environ.get("RANK", "0")),
            environ.get("BRCTL_NODE", ""),
        )

    @property
    def loss_off_since(self) -> int | None:
        """The first step whose loss is far above its past; None while all is well."""
        return self._jump.since

    def enter(self, phase: str, step: int) -> None:
        """Say what the rank begins to do now."""
        if phase not in PHASES:
            raise ValueError(f"{phase!r} is not one of {', '.join(PHASES)}")
        now = time.time()
        self._leave_phase(now)
        self._state.update(phase=phase, phase_since=now, step=step, at=now)
        self._write()

    def _leave_phase(self, now: float) -> None:
        """Add what the phase that ends took to this step's, and to the longest of its kind."""
        phase, since = self._state["phase"], self._state["phase_since"]
        if not isinstance(phase, str) or not isinstance(since, float):
            return
        seconds = max(0.0, now - since)
        self._phases[phase] = self._phases.get(phase, 0.0) + seconds
        # Before its first step a job starts: that load takes minutes and measures no batch.
        if self._state["step"]:
            self._longest[phase] = max(round(seconds, 3), self._longest.get(phase, 0.0))

    def saw_loss(self, step: int, loss: float) -> None:
        """Note this rank's own loss, before any exchange with other ranks."""
        finite = math.isfinite(loss)
        self._state.update(loss=loss if finite else None, loss_finite=finite)
        if not finite and self._state["first_nonfinite_step"] is None:
            self._state["first_nonfinite_step"] = step

    def saw_gradient(self, step: int, norm: float) -> None:
        """Note the norm of this rank's own gradient, before any exchange with other ranks."""
        finite = math.isfinite(norm)
        self._state.update(local_grad_norm=norm if finite else None, grad_finite=finite)
        if not finite and self._state["first_nonfinite_grad_step"] is None:
            self._state["first_nonfinite_grad_step"] = step

    def compares(self, tensors: int, kind: str) -> None:
        """Note how many tensors are compared with replicas on ranks of this kind; 0 for none."""
        self._state["compared_tensors"] = tensors
        self._state["compared_kind"] = kind

    def saw_wrong_number(self, finding: Mapping[str, object]) -> None:
        """Note what a check of the numbers found: the first of each `kind`, and how many."""
        wrong, kind = self._state["wrong_numbers"], str(finding["kind"])
        if isinstance(wrong, dict):
            first = wrong.setdefault(kind, {**finding, "count": 0})
            first["count"] += 1

    def finish_step(
        self,
        step: int,
        *,
        loss: float | None,
        grad_norm: float | None,
        seconds: float,
        wait_seconds: float | None,
        cost: float | None = None,
        batch: Mapping[str, object] | None = None,
        tokens: float | None = None,
    ) -> None:
        """Note a finished step.

        Args:
            step: Number of the step.
            loss: Loss of all ranks together.
            grad_norm: Norm of the gradient of all ranks together.
            seconds: Wall time of the whole step.
            wait_seconds: Wall time inside collectives; what peers spend waiting for a slow rank.
            cost: What this rank's batch costs to compute.
            batch: What it was: `epoch`, `position`, `samples`, `digest` and `source`, as the loader
                knows them.
            tokens: Tokens of the step, of all ranks together.
        """
        now = time.time()
        norm = _finite(grad_norm)
        if loss is not None:
            self._jump.see(step, loss)
        phases, self._phases = self._phases, {}
        self._recent.append((seconds, wait_seconds, phases.get("load")))
        self._state.update(step_seconds=seconds, wait_seconds=wait_seconds, grad_norm=norm, at=now)
        self._state["loss_off_since"] = self._jump.since
        self._state.update(_medians(self._recent))
        computing = [phases[name] for name in ("forward", "backward") if name in phases]
        self._note({"step": step, "load": phases.get("load"), "wait": wait_seconds,
                    "compute": sum(computing) if computing else None, "cost": cost,
                    **(batch or {})})  # fmt: skip
        if self._state["rank"] == 0:
            self._append({"step": step, "loss": _finite(loss), "grad_norm": norm,
                          "seconds": seconds, "at": now, "wait_seconds": wait_seconds,
                          "load_seconds": phases.get("load"),
                          **({} if tokens is None else {"tokens": tokens})})  # fmt: skip

    def _write(self) -> None:
        if self._directory is None:
            return
        target = self._directory / f"rank-{self._state['rank']:05d}.json"
        self._do(partial(_replace, target, json.dumps(self._state)))

    def _note(self, row: Mapping[str, object]) -> None:
        if self._ledger is not None:
            self._do(partial(self._ledger.append, row))

    def _append(self, line: Mapping[str, object]) -> None:
        if self._directory is None:
            return
        self._do(partial(_append, self._directory / "steps.ndjson", json.dumps(line) + "\n"))

    def _do(self, write: Callable[[], object]) -> None:
        try:
            self._files.do(write)
        except OSError as exc:
            if not self._warned:
                self._warned = True
                sys.stderr.write(f"brctl: progress is not written: {exc}\n")


def _replace(target: Path, text: str) -> None:
    new = target.with_suffix(".new")
    new.write_text(text)
    new.replace(target)


def _append(target: Path, text: str) -> None:
    with target.open("a") as stream:
        stream.write(text)


def _finite(value: float | None) -> float | None:
    """JSON has no NaN; a loss that is not a number is null here and false in `loss_finite`."""
    return value if value is not None and math.isfinite(value) else None


def _medians(recent: Iterable[tuple[float, float | None, float | None]]) -> dict[str, object]:
    """The usual step, wait and load of the last steps; null where none was measured."""
    steps, waits, loads = zip(*recent, strict=True)
    return {
        "recent_steps": len(steps),
        "recent_step_seconds": _median(steps),
        "recent_wait_seconds": _median(waits),
        "recent_load_seconds": _median(loads),
    }


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


class _Write:
    """One write and what became of it."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self.ended = threading.Event()
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            self._act()
        except Exception as exc:  # noqa: BLE001  raised in the thread that asked for it
            self.problem = exc
        finally:
            self.ended.set()


class FileWork:
    """Does small writes in a thread: a file server may stop answering, and training must not."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._writes: SimpleQueue[_Write | None] = SimpleQueue()
        self._owner = 0
        self._stuck: _Write | None = None

    def __reduce__(self) -> tuple[type["FileWork"], tuple[float]]:
        """A copy, or one in another process, has a thread of its own."""
        return FileWork, (self._patience_s,)

    def do(self, act: Callable[[], object]) -> None:
        """Have it done; left out while an earlier one is still stuck.

        Raises:
            OSError: It cannot be written; TimeoutError, once, where nothing answers.
            Exception: Whatever else the write raises.
        """
        if self._stuck is not None and not self._stuck.ended.is_set():
            return
        self._stuck = None
        write = _Write(act)
        if not self._has_thread():
            write.run()
        else:
            self._writes.put(write)
        if not write.ended.wait(self._patience_s):
            self._stuck = write
            raise TimeoutError(f"the file system does not answer for {self._patience_s:g} s")
        if write.problem is not None:
            raise write.problem

    def _has_thread(self) -> bool:
        """Of this process: a fork has the object and not the thread."""
        if self._owner == os.getpid():
            return True
        self._writes = SimpleQueue()
        # Not at exit, where handlers may still write: the thread is a daemon.
        weakref.finalize(self, self._writes.put, None).atexit = False
        try:
            threading.Thread(
                target=_write_all, args=(self._writes,), name="brctl-files", daemon=True
            ).start()
        except RuntimeError:
            return False
        self._owner = os.getpid()
        return True


def _write_all(writes: SimpleQueue[_Write | None]) -> None:
    while (write := writes.get()) is not None:
        write.run()
