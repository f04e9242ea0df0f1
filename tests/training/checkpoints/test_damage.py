"""What goes wrong beside a machine that dies: helpers, damaged slots, NaN, another script."""

import fcntl
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from brctl.training.checkpoints import start
from brctl.training.checkpoints.memory import FreeMemory
from brctl.training.checkpoints.slots import SlotFile
from brctl.training.step_checkpoints import (
    NothingToResumeError,
    Settings,
    StartError,
    StepCheckpoints,
)
from tests.training.checkpoints.toy_job import Starter, ToyJob

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.close()


@pytest.fixture
def job(starter: Starter, tmp_path: Path) -> Iterator[ToyJob]:
    job = ToyJob(starter, tmp_path, "dp=2", machines=2, pace_s=0.1, disk=str(tmp_path / "disk"),
                 disk_every=2)  # fmt: skip
    yield job
    job.close()


def backed_up(job: ToyJob, rank: int = 0) -> int:
    steps = job.steps(rank)
    return int(str(steps[-1]["backed_up"])) if steps else 0


def test_training_goes_on_when_a_helper_dies_and_saves_go_on_when_it_is_back(job: ToyJob) -> None:
    """One clear line; the last step stays meanwhile, and a machine may be lost afterwards."""
    job.start(steps=10_000)
    job.until(lambda: backed_up(job) >= 2, "the first backups")
    os.kill(job.helper_pid(0), signal.SIGKILL)
    job.until(lambda: "helper ended with status -9; training goes on" in job.text(0), "the line")
    kept = backed_up(job)
    job.until(lambda: backed_up(job) > kept and backed_up(job, 1) > kept, "backups again")
    job.crash()
    job.lose([0])
    job.start(steps=10_000)
    assert job.resumed() >= kept


def test_a_damaged_slot_is_replaced_by_the_peers_copy(job: ToyJob) -> None:
    """The line names the file; the step is the same."""
    job.start(steps=4)
    job.finish()
    path = job.directory(0) / "rank-00000.own"
    slot, header = SlotFile.open(path).whole()[-1]
    slot.payload[0] ^= 1
    job.start(steps=8)
    assert job.resumed() == header.step
    assert f"{path}: the checksum of block 0 differs" in job.text(0)


def on_disk(job: ToyJob) -> list[str]:
    """Steps that both ranks have on disk."""
    files = (job.logs / "disk").rglob("rank-*.slot")
    ranks = Counter(path.parent.name for path in files)
    return sorted(step for step, count in ranks.items() if count == 2)


def test_a_step_that_leads_to_nan_is_not_offered_twice(job: ToyJob) -> None:
    """NaN replaces no copy; the second time an older step, which is on disk, is taken."""
    job.start(steps=10_000)
    job.until(lambda: len(on_disk(job)) == 2, "two steps on disk")
    job.crash()
    job.start(steps=10_000, nan=True)
    resumed = job.resumed()
    job.until(lambda: bool(job.steps(0) and job.steps(1)), "a step that is no number")
    job.crash()
    assert [line["saved"] for line in job.steps()] == [0] * len(job.steps())
    job.start(steps=10_000)
    assert 0 < job.resumed() < resumed


def test_the_disk_has_what_no_memory_has(job: ToyJob) -> None:
    """Every second step here; both machines are lost."""
    job.start(steps=10_000)
    job.until(lambda: bool(on_disk(job)), "a step on disk")
    job.crash()
    job.lose([0, 1])
    job.start(steps=10_000)
    assert job.resumed() > 0
    assert job.resumed() % 2 == 0


def test_a_job_does_not_start_anew_over_copies_it_cannot_load(job: ToyJob) -> None:
    """The script changed its size: it says so on every rank and touches nothing."""
    job.start(steps=3)
    job.finish()
    before = (job.directory(1) / "rank-00001.own").read_bytes()
    job.start(steps=5, width=64)
    actual = job.fails()
    assert "holds a state of another size" in actual
    assert "resume=False" in actual
    assert (job.directory(1) / "rank-00001.own").read_bytes() == before


def test_where_nothing_good_is_left_the_job_stops(tmp_path: Path) -> None:
    """No silent step 0 over months of training, and no helper is left behind."""
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    settings = Settings(job="toy", directory=tmp_path / "slots")
    first = StepCheckpoints(model, optimizer, axes="dp=1", settings=settings)
    first.step_done(lambda: None)
    first.close()
    slot, _ = SlotFile.open(tmp_path / "slots" / "rank-00000.own").whole()[0]
    slot.payload[0] ^= 1
    with pytest.raises(NothingToResumeError, match="block 0 differs"):
        StepCheckpoints(model, optimizer, axes="dp=1", settings=settings)
    with (tmp_path / "slots" / "helper.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_fallback_is_asked_where_nothing_good_is_left(tmp_path: Path) -> None:
    """Its step is where the job goes on."""
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    settings = Settings(job="toy", directory=tmp_path / "slots")
    checkpoints = StepCheckpoints(
        model, optimizer, axes="dp=1", settings=settings, fallback=lambda: 40
    )
    assert (checkpoints.step, checkpoints.resumed) == (40, False)
    checkpoints.step_done(lambda: None)
    checkpoints.close()
    again = StepCheckpoints(model, optimizer, axes="dp=1", settings=settings)
    assert (again.step, again.resumed) == (41, True)
    again.close()


def test_a_machine_that_is_too_small_is_refused_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With needed and free bytes, and no file was made."""
    monkeypatch.setattr(start, "rooms", lambda _: [FreeMemory("the file system of /dev/shm", 4096)])
    model = nn.Linear(4, 4)
    settings = Settings(job="toy", directory=tmp_path / "slots")
    with pytest.raises(StartError, match=r"the slots need \d+ bytes .* has 4096 bytes"):
        StepCheckpoints(
            model, torch.optim.AdamW(model.parameters()), axes="dp=1", settings=settings
        )
    assert list((tmp_path / "slots").glob("rank-*")) == []
