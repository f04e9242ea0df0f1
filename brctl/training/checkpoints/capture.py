"""Copy live tensors into a slot, so that the next update may change them.

On a CPU the copy is made at once. On a GPU a stream of its own carries it into the slot, which is
page-locked, during the next forward and backward; `wait` before the next update.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from brctl.training.checkpoints.slots import Header, Slot, SlotState
from brctl.training.checkpoints.state import Snapshot, local, view_of


class Copier:
    """Copies of one rank, one at a time."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._stream = torch.cuda.Stream() if torch.cuda.is_initialized() else None
        self._pinned: set[int] = set()
        self._finisher: threading.Thread | None = None

    def pin(self, slot: Slot) -> None:
        """Page-lock a slot, once; copies into memory that is not are several times slower."""
        if self._stream is None:
            return
        address = ctypes.addressof(ctypes.c_char.from_buffer(slot.payload))
        if address not in self._pinned:
            self._pinned.add(address)
            failure = torch.cuda.cudart().cudaHostRegister(address, len(slot.payload), 0)
            if int(failure) != 0:
                sys.stderr.write(
                    f"brctl: cudaHostRegister refused {len(slot.payload)} bytes (error {failure}): "
                    "copies are slower; look at ulimit -l\n"
                )

    def start(self, slot: Slot, snapshot: Snapshot, header: Header, model: nn.Module) -> None:
        """Begin the copy; the slot is COPIED when it has ended, and `done` is called then."""
        slot.state = SlotState.WRITING
        slot.payload[snapshot.table_at : snapshot.payload_bytes] = snapshot.table
        slot.write_header(header)
        if self._stream is None:
            _copy(slot, snapshot, snapshot.tensors)
            self._finish(slot)
        else:
            self._start_on_stream(slot, snapshot, model, self._stream)

    def wait(self) -> None:
        """Return when no copy is under way: live tensors may be changed."""
        if self._finisher is not None:
            self._finisher.join()
            self._finisher = None

    def _start_on_stream(
        self, slot: Slot, snapshot: Snapshot, model: nn.Module, stream: torch.cuda.Stream
    ) -> None:
        # Buffers change in forward, as BatchNorm's do: they are small, and cloned on the way.
        buffers = {buffer.data_ptr() for buffer in model.buffers()}
        tensors = [
            local(t).clone() if local(t).data_ptr() in buffers else local(t)
            for t in snapshot.tensors
        ]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            _copy(slot, snapshot, tensors)
            event = torch.cuda.Event()
            event.record(stream)
        for tensor in tensors:
            if tensor.is_cuda:
                tensor.record_stream(stream)
        self._finisher = threading.Thread(
            target=self._finish_after, args=(slot, event), name="brctl-copy", daemon=True
        )
        self._finisher.start()

    def _finish_after(self, slot: Slot, event: torch.cuda.Event) -> None:
        event.synchronize()
        self._finish(slot)

    def _finish(self, slot: Slot) -> None:
        slot.state = SlotState.COPIED
        self._done()


def _copy(slot: Slot, snapshot: Snapshot, tensors: Sequence[Tensor]) -> None:
    whole = torch.frombuffer(slot.payload, dtype=torch.uint8)
    with torch.no_grad():
        for tensor, row in zip(tensors, snapshot.rows, strict=True):
            if row.size_bytes:
                view_of(whole, row).copy_(local(tensor), non_blocking=True)
