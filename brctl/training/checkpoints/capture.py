"""Copy live tensors into a slot, so that the next update may change them.

On a CPU the copy is made at once. On a GPU a stream of its own carries it into the slot, which is
page-locked, during the next forward and backward; `wait` before the next update.
"""

import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress

import torch
from torch import Tensor

from brctl.training.checkpoints.slots import Header, Slot, SlotState
from brctl.training.checkpoints.state import Snapshot, TensorRow, local, view_of

Placed = tuple[Tensor, TensorRow]

CLONED_BYTES = 16 << 20
"""What moves is cloned on the GPU up to this much in all; training is held up to copy the rest."""


class Copier:
    """Copies of one rank, one at a time."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._has_gpu = torch.cuda.is_initialized()
        self._streams: dict[torch.device, torch.cuda.Stream] = {}
        self._tried: set[int] = set()
        self._locked: list[memoryview] = []
        self._finisher: threading.Thread | None = None
        # A mapping that goes away while CUDA has it locked makes the next one there fail.
        self._unlock = weakref.finalize(self, _unlock, self._locked, os.getpid())
        self._unlock.atexit = False

    def pin(self, slot: Slot) -> None:
        """Page-lock a slot, once; copies into memory that is not are several times slower."""
        address = _address(slot.payload)
        if not self._has_gpu or address in self._tried:
            return
        self._tried.add(address)
        failure = torch.cuda.cudart().cudaHostRegister(address, len(slot.payload), 0)
        if int(failure) == 0:
            self._locked.append(slot.payload)
            return
        sys.stderr.write(
            f"brctl: cudaHostRegister refused {len(slot.payload)} bytes (error {failure}): "
            "copies are slower; look at ulimit -l\n"
        )
        _clear_error()

    def start(
        self, slot: Slot, snapshot: Snapshot, header: Header, moving: Iterable[Tensor] = ()
    ) -> None:
        """Begin the copy; the slot is COPIED when it has ended, and `done` is called then.

        Args:
            slot: Is being written from now on.
            snapshot: What to copy.
            header: Whose state it is.
            moving: Tensors of the snapshot that change before the next update.
        """
        slot.state = SlotState.WRITING
        slot.payload[snapshot.table_at : snapshot.payload_bytes] = snapshot.table
        slot.write_header(header)
        placed = list(zip(map(local, snapshot.tensors), snapshot.rows, strict=True))
        if not self._has_gpu:
            _copy(slot, placed)
            self._finish(slot)
        else:
            self._start_on_streams(slot, placed, moving)

    def wait(self) -> None:
        """Return when no copy is under way: live tensors may be changed."""
        if self._finisher is not None:
            self._finisher.join()
            self._finisher = None

    def close(self) -> None:
        """After the last copy: the slots are ordinary memory again."""
        self.wait()
        self._unlock()

    def _start_on_streams(self, slot: Slot, placed: list[Placed], moving: Iterable[Tensor]) -> None:
        still = _hold_still(slot, placed, {local(tensor).data_ptr() for tensor in moving})
        devices = dict.fromkeys(tensor.device for tensor, _ in still if tensor.is_cuda)
        events = [
            self._copy_from(device, slot, [pair for pair in still if pair[0].device == device])
            for device in devices
        ]
        _copy(slot, [pair for pair in still if not pair[0].is_cuda])
        finisher = threading.Thread(
            target=self._finish_after, args=(slot, events), name="brctl-copy", daemon=True
        )
        try:
            finisher.start()
        except RuntimeError:
            # No thread is to be had: slower is better than ended.
            self._finish_after(slot, events)
        else:
            self._finisher = finisher

    def _copy_from(
        self, device: torch.device, slot: Slot, placed: list[Placed]
    ) -> torch.cuda.Event:
        """On the tensors' own device, which need not be the current one: its order is its own."""
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            _copy(slot, placed)
            event = torch.cuda.Event()
            event.record(stream)
        for tensor, _ in placed:
            tensor.record_stream(stream)
        return event

    def _finish_after(self, slot: Slot, events: list[torch.cuda.Event]) -> None:
        for event in events:
            event.synchronize()
        self._finish(slot)

    def _finish(self, slot: Slot) -> None:
        slot.state = SlotState.COPIED
        self._done()


def _address(payload: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(payload))


def _unlock(locked: list[memoryview], owner: int) -> None:
    """A forked child has the objects and not the GPU."""
    if os.getpid() == owner:
        for payload in locked:
            torch.cuda.cudart().cudaHostUnregister(_address(payload))
        locked.clear()


def _clear_error() -> None:
    """CUDA reports a refusal once more, as the failure of the next kernel: let that be ours."""
    with suppress(RuntimeError):
        torch.ones(1, device="cuda").add_(1)


def _hold_still(slot: Slot, placed: list[Placed], moving: set[int]) -> list[Placed]:
    """What a stream may copy later: small ones that move are cloned, large ones copied now."""
    room, still = CLONED_BYTES, list[Placed]()
    for tensor, row in placed:
        if tensor.data_ptr() not in moving or not tensor.is_cuda:
            still.append((tensor, row))
            continue
        room -= row.size_bytes
        clone = _clone(tensor) if room >= 0 else None
        if clone is None:
            _copy(slot, [(tensor, row)], waits=True)
        else:
            still.append((clone, row))
    return still


def _clone(tensor: Tensor) -> Tensor | None:
    """None where the GPU has no room for one."""
    try:
        return tensor.clone()
    except torch.OutOfMemoryError:
        return None


def _copy(slot: Slot, placed: Iterable[Placed], *, waits: bool = False) -> None:
    whole = torch.frombuffer(slot.payload, dtype=torch.uint8)
    with torch.no_grad():
        for tensor, row in placed:
            if row.size_bytes:
                view_of(whole, row).copy_(tensor, non_blocking=tensor.is_cuda and not waits)
