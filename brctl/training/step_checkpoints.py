"""A checkpoint of every step, in three lines of a training script.

    checkpoints = StepCheckpoints(model, optimizer, axes="tp=8,dp=32,pp=8")   # resumes by itself
    for batch in data.after(checkpoints.step):
        loss = forward_and_backward(batch)
        checkpoints.step_done(optimizer.step, loss=loss)                      # updates and saves

Create it after `init_process_group`, on every rank. Each step's state goes into this machine's
memory and another machine's, placed so that any whole TP, PP or DP group may be lost where the
layout allows it. A step is saved without waiting for anything but the copy out of the GPU.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

from brctl.training.checkpoints.agreement import Ranks
from brctl.training.checkpoints.capture import Copier
from brctl.training.checkpoints.copies import add_never
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.layout import parse_layout
from brctl.training.checkpoints.parts import Parts, Stateful, Tree, unwrapped
from brctl.training.checkpoints.protocol import Save, Slots, decide_save, vote
from brctl.training.checkpoints.resume import NothingToResumeError, StartError, say
from brctl.training.checkpoints.settings import Settings
from brctl.training.checkpoints.slots import Header
from brctl.training.checkpoints.start import Start, Started
from brctl.training.checkpoints.state import Snapshot, describe

__all__ = ["Counts", "NothingToResumeError", "Settings", "StartError", "StepCheckpoints"]

_LOOK_EVERY_S = 0.01
SUSPECT_STEPS = 10
"""A loss that is no number so soon after a restart is blamed on the step it resumed from."""


@dataclass(slots=True)
class Counts:
    """What checkpoints cost and did since the start.

    Attributes:
        blocked_s: Seconds that training waited for them, the agreement included.
        lagging: Saves skipped because some rank's backup was not there yet.
        not_finite: Saves skipped because some rank's loss was no number.
        unable: Saves skipped because some rank's state does not fit its slot.
    """

    saved: int = 0
    lagging: int = 0
    not_finite: int = 0
    unable: int = 0
    blocked_s: float = 0.0


class StepCheckpoints:
    """The checkpoints of one rank.

    Attributes:
        step: The last finished step; after creation the one resumed from, 0 if there was none.
        counts: Saves made and skipped, seconds blocked.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        axes: str,
        others: Mapping[str, Stateful] | None = None,
        fallback: Callable[[], int] | None = None,
        resume: bool = True,
        settings: Settings | None = None,
    ) -> None:
        """Make the slots, start the helper and load the newest step that every shard has.

        Args:
            model: Any module; of DTensors the local shard is saved.
            optimizer: Its state may still be empty; one that wraps another, as accelerate's, is
                looked into.
            axes: Parallel sizes, fastest varying first; `ep=8:cp+dp` lays groups over axes.
            others: Scheduler, data position, loss scaler ...: whatever has `state_dict`.
            fallback: Called where no copy can be resumed from; loads from a store further away
                and returns the step, 0 if there is nothing either.
            resume: False throws away what memory holds of this job and begins with step 0.
            settings: By default from the environment.

        Raises:
            StartError: As when /dev/shm or the cgroup cannot hold the slots; on all ranks.
            NothingToResumeError: There are copies, but no step that every shard has.
            ValueError: The axes or the environment make no sense.
        """
        self.counts = Counts()
        self._settings = settings or Settings.from_environment()
        self._layout = parse_layout(axes, self._settings.ranks_per_machine)
        self._parts = Parts(model, unwrapped(optimizer), dict(others or {}))
        self._ranks = Ranks(self._settings.agree_timeout_s)
        if self._ranks.world_size != self._layout.world_size:
            raise ValueError(
                f"axes {axes!r} make {self._layout.world_size} ranks, the job has "
                f"{self._ranks.world_size}"
            )
        self._able = True
        self._agreed: int | None = None
        self._wakeup_pipe = _WakeupPipe(SlotDirectory(self._settings.directory))
        self._started, self.step = self._start(fallback, may_resume=resume)
        self._slots = self._slots_after_start()
        self._copier = Copier(self._wakeup_pipe.ring)
        for slot in self._started.file.slots:
            self._copier.pin(slot)

    @property
    def resumed(self) -> bool:
        """Whether this attempt goes on from a copy."""
        return self._started.resumed is not None

    def step_done(
        self, update: Callable[[], object], *, loss: float | Tensor | None = None
    ) -> None:
        """Wait until the last copy has left the live tensors, update, and begin the next copy.

        Args:
            update: Changes the weights, as `optimizer.step`.
            loss: This rank's loss; if it is no number the step is not saved on any rank.
        """
        self.before_update(loss=loss)
        update()
        self.after_update()

    def before_update(self, *, loss: float | Tensor | None = None) -> None:
        """The first half of `step_done`, for a framework that calls its optimizer itself."""
        began = time.monotonic()
        self._copier.wait()
        self._agreed = self._ranks.lowest(self._vote(loss))
        self.counts.blocked_s += time.monotonic() - began

    def after_update(self) -> None:
        """The second half: the weights are those of the next step, whose copy begins.

        Raises:
            RuntimeError: `before_update` was not called for this step.
        """
        if self._agreed is None:
            raise RuntimeError("after_update needs before_update first, once a step")
        began = time.monotonic()
        agreed, self._agreed = self._agreed, None
        self.step += 1
        self._save(decide_save(self._slots, agreed))
        if self._started.helper is not None:
            self._started.helper.keep_alive()
        self.counts.blocked_s += time.monotonic() - began

    @property
    def helper_pid(self) -> int | None:
        """Process id of this machine's helper; None on ranks that do not own one."""
        return self._started.helper.pid if self._started.helper else None

    def backed_up(self) -> int:
        """The newest step that this rank's backup has whole; 0 for none."""
        return self._started.file.backed_up

    def close(self, wait_s: float = 10.0) -> None:
        """End the helper once the last copy has its backup, or after `wait_s`; the slots stay.

        All ranks call it. One that does while an exception ends it waits for no other: those are
        in a step, and its error has to be seen.
        """
        self._copier.wait()
        limit_s = time.monotonic() + wait_s
        while self.backed_up() < self._slots.kept and time.monotonic() < limit_s:
            time.sleep(_LOOK_EVERY_S)
        if sys.exc_info()[0] is None:
            self._ranks.lowest(self.backed_up())
        if self._started.helper is not None:
            self._started.helper.close()
        self._copier.close()
        self._wakeup_pipe.close()

    def _start(
        self, fallback: Callable[[], int] | None, *, may_resume: bool
    ) -> tuple[Started, int]:
        start = Start(self._parts, self._layout, self._settings, self._ranks, may_resume=may_resume)
        try:
            return _run(start, fallback)
        except Exception:
            start.abandon()
            raise

    def _slots_after_start(self) -> Slots:
        resumed, file = self._started.resumed, self._started.file
        slot = file.find(resumed) if resumed else None
        return Slots(resumed.step, file.slots.index(slot)) if resumed and slot else Slots()

    def _vote(self, loss: float | Tensor | None) -> int:
        value = loss.detach() if isinstance(loss, Tensor) else loss
        finite = value is None or math.isfinite(float(value))
        return vote(self._slots.kept, self._started.file.backed_up, finite=finite, able=self._able)

    def _save(self, decision: Save) -> None:
        if decision is Save.WRITE:
            self._write()
        elif decision is Save.SKIP_LAGGING:
            self.counts.lagging += 1
        elif decision is Save.SKIP_NOT_FINITE:
            self.counts.not_finite += 1
            self._blame_the_restart()
        else:
            self.counts.unable += 1

    def _write(self) -> None:
        described = self._describe()
        if described is None:
            return
        tree, snapshot = described
        header = Header(
            job=self._settings.job, layout=self._layout.digest(), attempt=self._started.attempt,
            rank=self._ranks.rank, world_size=self._ranks.world_size, step=self.step,
            payload_bytes=snapshot.payload_bytes, table_at=snapshot.table_at,
        )  # fmt: skip
        slot = self._started.file.slots[self._slots.free_index]
        self._copier.start(slot, snapshot, header, self._parts.moving(tree))
        self._slots = self._slots.written(self.step)
        self.counts.saved += 1

    def _describe(self) -> tuple[Tree, Snapshot] | None:
        """None, said once, if the state cannot be saved any more: training goes on without."""
        try:
            tree = self._parts.tree()
            snapshot = describe(tree)
        except Exception as exc:  # noqa: BLE001  what a script hands over may raise anything
            problem = f"{type(exc).__name__}: {exc}"
        else:
            fits = snapshot.payload_bytes <= self._started.file.capacity
            if fits:
                return tree, snapshot
            problem = (
                f"the state grew to {snapshot.payload_bytes} bytes, a slot holds "
                f"{self._started.file.capacity}"
            )
        self._able = False
        say(f"step {self.step} is not saved, nor are later ones until a restart: {problem}")
        return None

    def _blame_the_restart(self) -> None:
        resumed = self._started.resumed
        if resumed is None or self.step - resumed.step > SUSPECT_STEPS:
            return
        if self._started.helper is None:
            return
        try:
            add_never(SlotDirectory(self._settings.directory).never, resumed)
        except OSError as exc:
            say(f"step {resumed.step} led to a loss that is no number, and is offered again: {exc}")


def _run(start: Start, fallback: Callable[[], int] | None) -> tuple[Started, int]:
    """What the steps need, and the step to go on from."""
    try:
        started = start.run()
    except NothingToResumeError as exc:
        if fallback is None:
            raise
        step = fallback()
        if step == 0 and exc.loaded:
            raise
        say(str(exc))
        return start.without_copies(), step
    if started.resumed is not None:
        return started, started.resumed.step
    return started, fallback() if fallback else 0


class _WakeupPipe:
    """Tells the helper that a copy has ended; a helper that is not there misses nothing."""

    def __init__(self, directory: SlotDirectory) -> None:
        self._path = directory.wakeup_pipe
        self._descriptor: int | None = None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def ring(self) -> None:
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(self._descriptor, b".")
        except BlockingIOError:
            return
        except OSError:
            # It looks by itself every quarter of a second as well.
            self.close()
