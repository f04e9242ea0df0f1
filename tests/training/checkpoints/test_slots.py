"""Slots in shared memory: what a kill, a flipped bit, a cut file or a foreign job leaves."""

import errno
import os
import signal
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from brctl.training.checkpoints.copies import MachineCopies, add_never, read_never
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.disk import StepFiles
from brctl.training.checkpoints.restore import Saved, Tier
from brctl.training.checkpoints.slots import (
    BLOCK_BYTES,
    PAGE_BYTES,
    DamagedSlotError,
    SlotFile,
    SlotState,
    file_bytes,
    parse_header,
)
from brctl.training.checkpoints.spec import HeldCopies, HelperSpec
from tests.training.checkpoints.filler import CAPACITY, fill, header


def machine(directory: Path, disk: Path | None = None) -> MachineCopies:
    return MachineCopies(HelperSpec("toy", "l", 2, 0, {0: 1}, (1,), directory, disk))


@pytest.fixture
def slots(tmp_path: Path) -> SlotFile:
    return SlotFile.create(SlotDirectory(tmp_path).own(0), CAPACITY)


def newest_step(slots: SlotFile) -> int:
    """While another process writes: between its two looks both slots may have been in work."""
    return max((header.step for _, header in slots.whole()), default=0)


def stock(directory: Path, disk: Path | None = None) -> HeldCopies:
    return machine(directory, disk).inspect_copies(("127.0.0.1", 1))


def test_a_file_is_allocated_whole_and_private(slots: SlotFile) -> None:
    """Pages that are only promised end a rank with SIGBUS later; the slot is the model."""
    status = slots.path.stat()
    assert status.st_size == file_bytes(CAPACITY)
    assert status.st_blocks * 512 >= status.st_size
    assert stat.S_IMODE(status.st_mode) == 0o600


def test_a_file_system_that_is_full_leaves_what_was_there(
    slots: SlotFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted as free and gone a moment later: the older copies stay, and no part of a new file."""
    fill(slots.slots[0], 8)

    def full(descriptor: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        SlotFile.create(slots.path, 2 * CAPACITY)
    assert [path.name for path in tmp_path.iterdir()] == ["rank-00000.own"]
    assert [header.step for _, header in SlotFile.open(slots.path).whole()] == [8]


def test_what_one_process_wrote_another_reads(slots: SlotFile) -> None:
    """Two steps, oldest first, with their checksums."""
    fill(slots.slots[1], 7)
    fill(slots.slots[0], 8)
    again = SlotFile.open(slots.path)
    assert [found.step for _, found in again.whole()] == [7, 8]
    assert again.slots[0].verify() == header(8)
    assert again.oldest() is again.slots[1]


def test_a_slot_being_written_is_not_offered_and_the_other_one_is(
    slots: SlotFile, tmp_path: Path
) -> None:
    """That is what a kill in the middle of a copy leaves; it is no damage."""
    fill(slots.slots[0], 7)
    slots.slots[1].state = SlotState.WRITING
    found = stock(tmp_path)
    assert [source.saved.step for source in found.sources] == [7]
    assert found.refused == ()


def test_a_copy_without_checksums_counts(slots: SlotFile, tmp_path: Path) -> None:
    """The rank finished it; only the helper had not come to it."""
    fill(slots.slots[0], 7)
    slots.slots[0].state = SlotState.COPIED
    assert [source.saved.step for source in stock(tmp_path).sources] == [7]
    assert slots.slots[0].state is SlotState.CHECKED


def test_a_flipped_byte_is_found(slots: SlotFile, tmp_path: Path) -> None:
    """The reason names the block; the other slot is offered."""
    fill(slots.slots[0], 7)
    fill(slots.slots[1], 8)
    slots.slots[1].payload[BLOCK_BYTES + 5] ^= 1
    found = stock(tmp_path)
    assert [source.saved.step for source in found.sources] == [7]
    assert found.refused == (f"{slots.path}: the checksum of block 1 differs",)


def test_damaged_checksums_and_headers_are_found(slots: SlotFile, tmp_path: Path) -> None:
    """Nothing of a slot is believed without its own checksum."""
    fill(slots.slots[0], 7)
    fill(slots.slots[1], 8)
    content = bytearray(slots.path.read_bytes())
    content[PAGE_BYTES + 30] ^= 1
    content[PAGE_BYTES + (len(content) - PAGE_BYTES) // 2 + PAGE_BYTES] ^= 1
    slots.path.write_bytes(content)
    found = stock(tmp_path)
    assert found.sources == ()
    assert [line.rpartition(": ")[2] for line in found.refused] == [
        "the header's checksum differs",
        "the checksums are damaged",
    ]


@pytest.mark.parametrize(
    ("job", "layout", "reason"),
    [("other", "l", "of job 'other', this is 'toy'"), ("toy", "m", "of another parallel layout")],
)
def test_another_jobs_slot_is_refused(
    slots: SlotFile, tmp_path: Path, job: str, layout: str, reason: str
) -> None:
    """With the reason; so is one of this job with other axes."""
    fill(slots.slots[0], 7, job=job, layout=layout)
    found = stock(tmp_path)
    assert found.sources == ()
    assert found.refused == (f"{slots.path}: {reason}",)


def test_a_slot_under_another_ranks_name_is_refused(slots: SlotFile, tmp_path: Path) -> None:
    """Files may have been copied about."""
    fill(slots.slots[0], 7)
    slots.path.rename(SlotDirectory(tmp_path).own(1))
    assert stock(tmp_path).sources == ()


@pytest.mark.parametrize("size", [0, 100, PAGE_BYTES, 5 * PAGE_BYTES])
def test_a_cut_file_is_refused(slots: SlotFile, tmp_path: Path, size: int) -> None:
    """At any length."""
    os.truncate(slots.path, size)
    with pytest.raises(DamagedSlotError):
        SlotFile.open(slots.path)
    assert len(stock(tmp_path).refused) == 1


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{}", b'{"job": 1}', b"[" * 3000,
     b'{"job":"toy","layout":"l","attempt":1,"rank":0,"world_size":2,"step":true,'
     b'"payload_bytes":1,"table_at":0}',
     b'{"job":"toy","layout":"l","attempt":1,"rank":-1,"world_size":2,"step":1,'
     b'"payload_bytes":1,"table_at":0}',
     b'{"job":"toy","layout":"l","attempt":1,"rank":0,"world_size":2,"step":1,'
     b'"payload_bytes":5000,"table_at":0}'],
)  # fmt: skip
def test_a_header_from_anywhere_is_refused_and_breaks_nothing(text: bytes) -> None:
    """Its numbers are numbers and lie within the slot, or it is none."""
    with pytest.raises(DamagedSlotError):
        parse_header(text, 4096)


def test_begin_keeps_one_step_and_forgets_the_others(slots: SlotFile, tmp_path: Path) -> None:
    """Steps after the one resumed from are computed anew."""
    fill(slots.slots[0], 7)
    fill(slots.slots[1], 8)
    slots.backed_up = 8
    copies = machine(tmp_path)
    copies.open_files()
    copies.keep_only(Saved(1, 7))
    assert [slot.state for slot in slots.slots] == [SlotState.CHECKED, SlotState.EMPTY]
    assert slots.backed_up == 0


def test_a_step_on_disk_is_whole_or_not_there(slots: SlotFile, tmp_path: Path) -> None:
    """Written under another name, moved when it is on the disk; the newest two are kept."""
    disk = StepFiles(tmp_path / "disk" / "toy")
    for step in (5, 10, 15):
        fill(slots.slots[0], step)
        disk.write(slots.slots[0])
        disk.remove_old((0,))
    assert [(path.parent.name, rank) for path, rank in disk.all()] == [
        ("00001-0000000015", 0),
        ("00001-0000000010", 0),
    ]
    assert disk.open(Saved(1, 15), 0).verify() == header(15)
    slots.slots[0].state = SlotState.EMPTY
    found = stock(tmp_path, tmp_path / "disk")
    assert {(source.saved.step, source.tier) for source in found.sources} == {
        (10, Tier.DISK), (15, Tier.DISK),
    }  # fmt: skip


def test_a_step_that_another_machine_still_needs_stays_on_a_shared_disk(
    slots: SlotFile, tmp_path: Path
) -> None:
    """Rank 1's machine is two steps behind: the only step of both must not go."""
    disk, other = StepFiles(tmp_path / "disk"), SlotFile.create(tmp_path / "other", CAPACITY)
    fill(other.slots[0], 5, rank=1)
    disk.write(other.slots[0])
    for step in (5, 10, 15):
        fill(slots.slots[0], step)
        disk.write(slots.slots[0])
        disk.remove_old((0,))
    assert [(path.parent.name[-2:], rank) for path, rank in disk.all()] == [
        ("15", 0), ("10", 0), ("05", 0), ("05", 1),
    ]  # fmt: skip


def test_ranks_that_come_no_more_keep_no_steps_on_a_disk(slots: SlotFile, tmp_path: Path) -> None:
    """A machine that holds other ranks after a restart, or a shared disk of a job that shrank."""
    disk = StepFiles(tmp_path / "disk")
    for rank, step, attempt in [(1, 5, 1), *((0, step, 2) for step in range(6, 16))]:
        fill(slots.slots[0], step, rank=rank, attempt=attempt)
        disk.write(slots.slots[0])
        disk.remove_old((rank,))
    assert [path.parent.name[-2:] for path, _ in disk.all()] == ["15", "14"]


def test_a_step_of_the_attempt_before_stays_until_all_ranks_wrote_one_of_this(
    slots: SlotFile, tmp_path: Path
) -> None:
    """Rank 1's machine has not written since the restart: the only step of both must not go."""
    disk = StepFiles(tmp_path / "disk")
    for rank, step, attempt in [(1, 5, 1), (0, 5, 1), (0, 6, 2), (0, 7, 2), (0, 8, 2)]:
        fill(slots.slots[0], step, rank=rank, attempt=attempt)
        disk.write(slots.slots[0])
        disk.remove_old((rank,))
    assert [path.parent.name[-2:] for path, _ in disk.all()] == ["08", "07", "06", "05", "05"]


def test_a_slot_overwritten_under_a_slow_disk_is_not_kept(slots: SlotFile, tmp_path: Path) -> None:
    """Its checksums tell, and nothing is left behind."""
    fill(slots.slots[0], 5)
    slots.slots[0].payload[3] ^= 1
    disk = StepFiles(tmp_path / "disk")
    with pytest.raises(DamagedSlotError, match="overwritten"):
        disk.write(slots.slots[0])
    assert [path for path in (tmp_path / "disk").rglob("*") if path.is_file()] == []


def test_a_cut_file_on_disk_is_refused_with_its_name(slots: SlotFile, tmp_path: Path) -> None:
    """And the others are still offered."""
    disk = StepFiles(tmp_path / "disk" / "toy")
    for step in (5, 10):
        fill(slots.slots[0], step)
        disk.write(slots.slots[0])
    path = next(disk.all())[0]
    os.truncate(path, path.stat().st_size - 1)
    slots.path.unlink()
    found = stock(tmp_path, tmp_path / "disk")
    assert [source.saved.step for source in found.sources] == [5]
    assert "cut" in found.refused[0]
    assert str(path) in found.refused[0]


def test_steps_not_to_be_offered_again_are_remembered(tmp_path: Path) -> None:
    """Each once; junk is no list."""
    path = SlotDirectory(tmp_path).never
    assert read_never(path) == ()
    for step in (8, 5, 8):
        add_never(path, Saved(1, step))
    assert read_never(path) == (Saved(1, 5), Saved(1, 8))
    path.write_text("{")
    assert read_never(path) == ()


def test_a_directory_in_use_is_said_with_what_to_do(tmp_path: Path) -> None:
    """As of two jobs with one name on a machine."""
    directory = SlotDirectory(tmp_path)
    held = directory.take_lock()
    with pytest.raises(OSError, match=r"is in use: a helper holds helper\.lock .* BRCTL_JOB"):
        directory.take_lock(wait_s=0)
    os.close(held)
    os.close(directory.take_lock(wait_s=0))


def test_files_that_a_kill_left_half_made_are_removed(slots: SlotFile, tmp_path: Path) -> None:
    """They hold memory that the next start needs, and nobody's step."""
    (tmp_path / "rank-00001.own.new").write_bytes(b"half")
    SlotDirectory(tmp_path).remove_unfinished()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank-00000.own"]


def test_a_directory_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    """/dev/shm is everybody's: a folder that others can look into is refused."""
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    prepared.chmod(0o755)
    with pytest.raises(PermissionError, match="mode 755"):
        SlotDirectory(prepared).create()
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(PermissionError):
        SlotDirectory(link).create()
    own = SlotDirectory(tmp_path / "mine")
    own.create()
    own.create()
    assert stat.S_IMODE(own.path.stat().st_mode) == 0o700


WRITER = [sys.executable, "-m", "tests.training.checkpoints.filler"]


def test_25_kills_at_any_moment_leave_25_usable_files(tmp_path: Path) -> None:
    """At most one step old, and the steps never go back."""
    path = SlotDirectory(tmp_path).own(0)
    fill(SlotFile.create(path, CAPACITY).slots[0], 0)
    newest = [0]
    for round_ in range(25):
        arguments = [*WRITER, str(path), str(newest[-1])]
        writer = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        moved = SlotFile.open(path)
        while newest_step(moved) < newest[-1] + 1 + round_ % 3:
            pass
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        found = stock(tmp_path)
        assert found.refused == ()
        steps = sorted(source.saved.step for source in found.sources)
        newest.append(steps[-1])
        # One step behind at most: the other slot holds the step before, or was being written.
        unfinished = [slot for slot in moved.slots if slot.state is SlotState.WRITING]
        assert steps == [steps[-1] - 1, steps[-1]] or (len(steps) == 1 and len(unfinished) == 1)
    assert len(newest) == 26
    assert all(before < after for before, after in pairwise(newest))
