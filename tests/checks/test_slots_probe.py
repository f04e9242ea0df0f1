"""Probe job.slots on real files of slots, and on what may lie there instead."""

import os
from pathlib import Path

import pytest

from brctl.training.checkpoints.copies import add_never
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.restore import Saved
from brctl.training.checkpoints.slots import PAGE_BYTES, SlotFile, SlotState
from tests.checks.probes import Read, load_probe, read
from tests.training.checkpoints.filler import CAPACITY, fill

PROBE = load_probe("job.slots")


@pytest.fixture
def slots(tmp_path: Path) -> SlotFile:
    return SlotFile.create(SlotDirectory(tmp_path).own(0), CAPACITY)


def look(folder: Path, **more: object) -> Read:
    return read("job.slots", {"directory": str(folder), "job": "toy", "world_size": 2, **more})


def steps(found: Read) -> dict[str, object]:
    return {
        s.partition(":")[2]: v for (name, s), v in found.values.items() if name == "job.slots.step"
    }


def test_both_steps_of_a_rank_are_seen(slots: SlotFile, tmp_path: Path) -> None:
    """With whose they are, and sound when they are read."""
    fill(slots.slots[0], 7)
    fill(slots.slots[1], 8)
    found = look(tmp_path, verify=True)
    assert steps(found) == {"rank-00000.own:0": 7, "rank-00000.own:1": 8}
    assert found.values["job.slots.sound", "slot:rank-00000.own:1"] is True
    assert found.values["job.slots.own", "slot:rank-00000.own:1"] is True
    assert found.values["job.slots.unreadable", ""] == 0


def test_a_slot_in_writing_is_no_step_and_no_damage(slots: SlotFile, tmp_path: Path) -> None:
    """It is what every kill leaves."""
    fill(slots.slots[0], 7)
    fill(slots.slots[1], 8)
    slots.slots[1].state = SlotState.WRITING
    found = look(tmp_path)
    assert steps(found) == {"rank-00000.own:0": 7}
    assert found.values["job.slots.unreadable", ""] == 0


def test_a_flipped_bit_is_seen_where_the_contents_are_read(slots: SlotFile, tmp_path: Path) -> None:
    """Of the step that is asked for only."""
    fill(slots.slots[0], 7)
    fill(slots.slots[1], 8)
    slots.slots[0].payload[5] ^= 1
    found = look(tmp_path, verify=True, steps=[7])
    assert found.values["job.slots.sound", "slot:rank-00000.own:0"] is False
    assert ("job.slots.sound", "slot:rank-00000.own:1") not in found.values


def test_another_job_s_slots_are_refused_with_its_name(slots: SlotFile, tmp_path: Path) -> None:
    """And so are those of a job of another size."""
    fill(slots.slots[0], 7)
    other = look(tmp_path, job="other")
    assert steps(other) == {}
    assert "of job toy" in other.notes[0]
    assert "of a job of 2 ranks" in look(tmp_path, world_size=4).notes[0]


def test_what_is_no_file_of_slots_is_counted_and_never_waited_for(
    slots: SlotFile, tmp_path: Path
) -> None:
    """A cut file, a pipe, a link, a file of something else."""
    fill(slots.slots[0], 7)
    whole = slots.path.read_bytes()
    (tmp_path / "rank-00001.own").write_bytes(whole[: PAGE_BYTES * 2])
    os.mkfifo(tmp_path / "rank-00002.own")
    (tmp_path / "rank-00003.peer").symlink_to("/dev/zero")
    (tmp_path / "rank-00004.peer").write_text("{}")
    found = look(tmp_path)
    assert steps(found) == {"rank-00000.own:0": 7}
    assert found.values["job.slots.unreadable", ""] == 4
    assert any("cut" in note for note in found.notes)


def test_no_directory_is_no_steps_and_a_closed_one_is_not_known(tmp_path: Path) -> None:
    """A fresh standby keeps nothing, and that is an answer."""
    assert look(tmp_path / "none").values == {("job.slots.files", ""): 0}
    (tmp_path / "file").write_text("")
    assert look(tmp_path / "file").status == 1


def test_steps_that_led_to_nan_are_told(slots: SlotFile, tmp_path: Path) -> None:
    """As the ranks wrote them down."""
    add_never(SlotDirectory(tmp_path).never, Saved(2, 41))
    assert look(tmp_path).values["job.slots.never", "never:2-41"] == "2-41"


@pytest.mark.parametrize(
    ("owner", "lines", "removed"),
    [(1000, [], True), (1000, ["RemoveIPC=no"], False), (999, [], False),
     (1000, ["#RemoveIPC=no"], True), (1000, ["RemoveIPC=no", "RemoveIPC=yes"], True)],
)  # fmt: skip
def test_logind_removes_what_users_leave_unless_told_otherwise(
    tmp_path: Path, owner: int, lines: list[str], removed: bool
) -> None:
    """logind.conf(5): the default is yes, system users are spared, what is dropped in wins."""
    config = tmp_path / "logind.conf"
    config.write_text("[Login]\n" + "\n".join(lines[:1]))
    (tmp_path / "logind.conf.d").mkdir()
    (tmp_path / "logind.conf.d" / "50.conf").write_text("\n".join(lines[1:]))
    assert PROBE.removed_at_logout(owner, [str(config)], str(tmp_path)) is removed
