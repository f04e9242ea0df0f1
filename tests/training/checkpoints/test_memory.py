"""Memory is counted before the first step."""

import os
from pathlib import Path

import pytest

from brctl.training.checkpoints.memory import (
    FreeMemory,
    InsufficientMemoryError,
    bytes_needed,
    check_free_memory,
    rooms,
)
from brctl.training.checkpoints.slots import PAGE_BYTES, SlotFile, file_bytes


def test_a_small_dev_shm_is_refused_with_needed_and_free_bytes() -> None:
    """Docker gives 64 MiB unless told otherwise; the way out is in the line."""
    with pytest.raises(InsufficientMemoryError) as refused:
        check_free_memory(
            1 << 30, [FreeMemory("the file system of /dev/shm", 64 << 20), FreeMemory("x", 1 << 40)]
        )
    assert "need 1073741824 bytes (1.00 GiB)" in str(refused.value)
    assert "the file system of /dev/shm has 67108864 bytes (0.06 GiB) free" in str(refused.value)
    assert "--shm-size" in str(refused.value)


def test_what_fits_is_not_refused() -> None:
    """To the byte."""
    check_free_memory(100, [FreeMemory("a", 100), FreeMemory("b", 200)])


def test_files_that_are_there_need_no_memory_again(tmp_path: Path) -> None:
    """A restart finds its slots, and asks for the missing ones only."""
    here, missing = tmp_path / "rank-00000.own", tmp_path / "rank-00001.peer"
    SlotFile.create(here, 4 * PAGE_BYTES)
    held = here.stat().st_blocks * 512
    needed = bytes_needed([4 * PAGE_BYTES, 8 * PAGE_BYTES], [here, missing])
    assert needed == file_bytes(4 * PAGE_BYTES) + file_bytes(8 * PAGE_BYTES) - held


def test_every_cgroup_above_the_process_counts(tmp_path: Path) -> None:
    """A pod's limit is often two levels up; `max` is no limit."""
    cgroups, process = tmp_path / "cgroup", tmp_path / "process"
    leaf = cgroups / "pod" / "container"
    leaf.mkdir(parents=True)
    process.mkdir()
    (process / "cgroup").write_text("0::/pod/container\n")
    (leaf / "memory.max").write_text("max\n")
    (leaf / "memory.current").write_text("10\n")
    (leaf.parent / "memory.max").write_text("1000\n")
    (leaf.parent / "memory.current").write_text("400\n")
    found = rooms(tmp_path, cgroups, process)
    free = os.statvfs(tmp_path)
    assert found[0].free_bytes == pytest.approx(free.f_bavail * free.f_frsize, rel=0.2)
    assert found[1:] == [FreeMemory(f"the memory limit of cgroup {leaf.parent}", 600)]


def test_without_cgroup_v2_the_file_system_alone_counts(tmp_path: Path) -> None:
    """Version 1 shows no limit in this place, and none is invented."""
    (tmp_path / "cgroup").write_text("5:memory:/x\n")
    assert len(rooms(tmp_path, tmp_path, tmp_path)) == 1
