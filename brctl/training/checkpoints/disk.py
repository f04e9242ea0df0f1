"""Copies on disk: one file a rank and step, laid out as a slot, written by the helper only.

A file appears under its name when all of it is on the disk. A slot may be overwritten while a slow
disk is still writing it; each block's checksum tells, and the file is thrown away.
"""

import mmap
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from brctl.training.checkpoints.restore import Saved
from brctl.training.checkpoints.slots import (
    BLOCK_BYTES,
    PAGE_BYTES,
    DamagedSlotError,
    Slot,
    SlotState,
    checksum_bytes,
    parse_header,
)

KEPT_STEPS = 2

_BEGUN_STEPS = 4
"""After more steps of an attempt, a rank without a file in any of them comes no more."""


class StepFiles:
    """The steps of one job on one disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, slot: Slot) -> None:
        """Write a CHECKED slot through to the disk; does nothing if the file is there.

        Raises:
            DamagedSlotError: The slot was overwritten meanwhile.
            OSError: The disk does not take it.
        """
        header, sums = slot.header(), slot.checksums()
        target = self._path(header.saved, header.rank)
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = target.with_name(f".{target.name}.{os.uname().nodename}.{os.getpid()}.new")
        try:
            self._write(partial, slot, slot.payload[: header.payload_bytes], sums)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        _sync(target.parent)

    def open(self, saved: Saved, rank: int) -> Slot:
        """The copy of a rank at a step; raises as `open_path` does."""
        return open_path(self._path(saved, rank))

    def all(self) -> Iterator[tuple[Path, int]]:
        """Files of all steps with their ranks, newest step first."""
        for step in reversed(self._steps()):
            for path in sorted(step.glob("rank-*.slot")):
                if path.stem[5:].isdecimal():
                    yield path, int(path.stem[5:])

    def remove_old(self, ranks: tuple[int, ...]) -> None:
        """Remove the steps before the last two that all these ranks have, and all seen here.

        On a disk that machines share the others' files count: one of them may be a step behind.
        Those that only an earlier attempt had count until this one has begun for all.
        """
        steps = self._steps()
        if len(steps) <= KEPT_STEPS:
            return
        newest = [s for s in steps if _attempt(s) == _attempt(steps[-1])]
        counted = newest if len(newest) > _BEGUN_STEPS else steps
        names = {_name(rank) for rank in ranks} | {
            path.name for path, _ in self.all() if path.parent in counted
        }
        whole = [s for s in steps if all((s / name).exists() for name in names)]
        if len(whole) > KEPT_STEPS:
            for step in steps[: steps.index(whole[-KEPT_STEPS])]:
                shutil.rmtree(step, ignore_errors=True)

    def _write(self, path: Path, slot: Slot, payload: memoryview, sums: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as stream:
            stream.write(slot.header_page(SlotState.CHECKED))
            stream.write(sums.ljust(checksum_bytes(len(payload)), b"\0"))
            for index, start in enumerate(range(0, len(payload), BLOCK_BYTES)):
                block = bytes(payload[start : start + BLOCK_BYTES])
                if zlib.crc32(block).to_bytes(4, "little") != sums[4 * index :][:4]:
                    raise DamagedSlotError("the slot was overwritten before the disk had it")
                stream.write(block)
            os.fsync(stream.fileno())

    def _path(self, saved: Saved, rank: int) -> Path:
        return self._directory / f"{saved.attempt:05d}-{saved.step:010d}" / _name(rank)

    def _steps(self) -> list[Path]:
        return sorted(path for path in self._directory.glob("*-*") if path.is_dir())


def open_path(path: Path) -> Slot:
    """Map one file of a step; its payload is not yet verified.

    Raises:
        DamagedSlotError: It is not whole.
        OSError: It cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        if size < PAGE_BYTES:
            raise DamagedSlotError(f"{size} bytes are no copy")
        image = memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)
    header = parse_header(Slot(image[:PAGE_BYTES], 0).header_text(), size)
    expected = PAGE_BYTES + checksum_bytes(header.payload_bytes) + header.payload_bytes
    if size != expected:
        raise DamagedSlotError(f"{size} bytes instead of {expected}: cut")
    return Slot(image, header.payload_bytes)


def _attempt(step: Path) -> str:
    return step.name.split("-")[0]


def _name(rank: int) -> str:
    return f"rank-{rank:05d}.slot"


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
