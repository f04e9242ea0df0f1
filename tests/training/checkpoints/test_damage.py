"""What goes wrong beside a machine that dies: helpers, damaged slots, NaN, another script."""

import fcntl
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

import pytest
import torch
from torch import nn

from brctl.training.checkpoints import helper_process, start
from brctl.training.checkpoints.agreement import Ranks
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.disk import StepFiles
from brctl.training.checkpoints.helper_process import HelperProcess, HelperStuckError
from brctl.training.checkpoints.memory import FreeMemory
from brctl.training.checkpoints.slots import SlotFile
from brctl.training.checkpoints.spec import HeldCopies, HelperSpec
from brctl.training.checkpoints.wire import new_key, write_key
from brctl.training.step_checkpoints import (
    NothingToResumeError,
    Settings,
    StartError,
    StepCheckpoints,
)
from tests.fakes.checkpoint_helper import FakeHelper
from tests.timeouts import TIMEOUT_S
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


def lagging(job: ToyJob) -> int:
    return int(str(job.steps()[-1]["lagging"]))


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


def test_training_goes_on_beside_a_peer_that_stands_still(job: ToyJob) -> None:
    """Saves are skipped and counted, the last one stays; it is there after a crash."""
    job.start(steps=10_000)
    job.until(lambda: backed_up(job) >= 2, "the first backups")
    helper = job.helper_pid(1)
    os.kill(helper, signal.SIGSTOP)
    try:
        before = lagging(job)
        job.until(lambda: lagging(job) >= before + 3, "saves that are skipped")
        kept = backed_up(job)
        assert job.last_step() > kept + 1
        job.crash()
    finally:
        os.kill(helper, signal.SIGKILL)
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


class StartedHelper:
    """A helper's process that runs until it is ended."""

    terminated = False

    def terminate(self) -> None:
        self.terminated = True


def test_a_helper_that_is_back_and_cannot_join_the_others_is_said_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would bring nothing to anybody, and all saves would be skipped without a word."""
    process = StartedHelper()
    inventory = HeldCopies((), (), (), ("127.0.0.1", 1))
    refusal = {"done": False, "reason": "rank-00000.own is gone"}
    monkeypatch.setattr(helper_process, "_start", lambda _: (process, inventory))
    monkeypatch.setattr(helper_process, "_ask", lambda *_: refusal)
    helper = HelperProcess(HelperSpec("toy", "l", 1, 0, {0: 0}, (), tmp_path))
    helper._start_again()
    assert process.terminated
    assert "helper is not back: rank-00000.own is gone" in capsys.readouterr().err


def test_a_disk_that_does_not_answer_holds_up_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The start goes on without it; what may lie there is refused, and not taken for nothing."""
    step = tmp_path / "disk" / "toy" / "0000000001-0000000005"
    step.mkdir(parents=True)
    os.mkfifo(step / "rank-00000.slot")  # it is opened and never comes back
    slots = SlotDirectory(tmp_path / "slots")
    slots.create()
    write_key(slots.key, new_key())
    begin = helper_process._start

    def begin_soon_stuck(spec: HelperSpec) -> object:
        patience_s = 0.5 if spec.disk else TIMEOUT_S
        monkeypatch.setattr(helper_process, "_STUCK_AFTER_S", patience_s)
        return begin(spec)

    monkeypatch.setattr(helper_process, "_start", begin_soon_stuck)
    spec = HelperSpec("toy", "l", 1, 0, {0: 0}, (), slots.path, disk=tmp_path / "disk")
    helper = HelperProcess(spec)
    disk = tmp_path / "disk"
    assert helper.inventory.refused == (f"{disk}: does not answer, steps on it are not offered",)
    said = f"brctl: {disk} does not answer (the checkpoint helper "
    assert capsys.readouterr().err.startswith(said)
    assert helper.ask({"do": "begin", "resume": None}) == ""
    helper.close()


def test_a_helper_that_computes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of terabytes take long to verify; one that stands still is given up."""
    monkeypatch.setattr(helper_process, "_STUCK_AFTER_S", 0.0)
    monkeypatch.setattr(helper_process, "_LOOK_EVERY_S", 0.01)
    ticks = iter(range(1_000))
    monkeypatch.setattr(helper_process, "_cpu_ticks", lambda _: next(ticks))
    with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE, text=True) as helper:
        with pytest.raises(StopIteration):
            helper_process._wait_for_answer(helper)
        monkeypatch.setattr(helper_process, "_cpu_ticks", lambda _: 7)
        with pytest.raises(HelperStuckError, match="neither answered nor computed for 0 s"):
            helper_process._read(helper)


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


Keep = Callable[..., StepCheckpoints]


@pytest.fixture
def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keep]:
    """Checkpoints of a job of one rank, begun anew at each call."""
    monkeypatch.setattr(start, "HelperProcess", FakeHelper)
    made: list[StepCheckpoints] = []

    def begin(job: str = "toy", **options: object) -> StepCheckpoints:
        torch.manual_seed(len(made))
        model = nn.Linear(4, 4)
        settings = Settings(job=job, directory=tmp_path / "slots", disk=tmp_path / "disk",
                            disk_every=1)  # fmt: skip
        arguments = {"axes": "dp=1", "settings": settings, **options}
        made.append(StepCheckpoints(model, torch.optim.SGD(model.parameters()), **arguments))  # type: ignore[arg-type]  # by name
        return made[-1]

    yield begin
    for checkpoints in made:
        checkpoints.close(wait_s=0)


def test_weights_that_were_loaded_and_not_trusted_are_not_trained_on(
    keep: Keep, tmp_path: Path
) -> None:
    """A fallback that has nothing either would begin with them, called step 0."""
    first = keep(others={"data": Position(1)})
    first.step_done(lambda: None)
    with pytest.raises(NothingToResumeError, match="ValueError: of another size"):
        keep(others={"data": Position(2)}, fallback=lambda: 0)
    assert keep(others={"data": Position(2)}, fallback=lambda: 30).step == 30
    assert [h.step for _, h in SlotFile.open(tmp_path / "slots" / "rank-00000.own").whole()] == []


def test_a_job_that_begins_anew_on_purpose_does_so_though_disks_have_its_steps(
    keep: Keep, tmp_path: Path
) -> None:
    first = keep()
    first.step_done(lambda: None)
    slot, _ = SlotFile.open(tmp_path / "slots" / "rank-00000.own").whole()[0]
    slot.add_checksums()
    StepFiles(tmp_path / "disk" / "toy").write(slot)
    again = keep(resume=False)
    assert (again.step, again.resumed) == (0, False)


@pytest.mark.parametrize(
    "options", [{"resume": False}, {"fallback": lambda: 7}], ids=["anew", "elsewhere"]
)
def test_another_jobs_steps_are_not_thrown_away(keep: Keep, options: dict[str, object]) -> None:
    """Two jobs with one BRCTL_SLOT_DIR: the other one may wait for its restart."""
    first = keep("first")
    first.step_done(lambda: None)
    with pytest.raises(StartError, match="holds steps of job 'first', which may go on from them"):
        keep("second", **options)
    assert keep("first").step == 1


def test_a_job_says_from_which_step_it_goes_on(
    keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever meant to start another job under its name sees it."""
    first = keep()
    first.step_done(lambda: None)
    keep()
    said = "goes on from step 1 of attempt 1: 1 shards, 0 from disks, 0 from other machines"
    assert said in capsys.readouterr().err


def test_a_file_of_another_brctl_is_kept_for_it(keep: Keep, tmp_path: Path) -> None:
    """Its copy may be the only one."""
    keep()
    path = tmp_path / "slots" / "rank-00000.own"
    content = bytearray(path.read_bytes())
    content[8] = 9
    path.write_bytes(content)
    with pytest.raises(StartError, match="version 9 of the file, 1 can be read; go on with that"):
        keep()
    assert path.read_bytes() == content


def test_training_goes_on_where_a_part_stops_telling_its_state(
    keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it raises; later steps are counted as not saved."""
    data = Position(1)
    checkpoints = keep(others={"data": data})
    data.broken = True
    for _ in range(2):
        checkpoints.step_done(lambda: None)
    assert (checkpoints.step, checkpoints.counts.saved) == (2, 0)
    assert "step 1 is not saved, nor are later ones" in capsys.readouterr().err
    data.broken = False


def test_training_goes_on_where_a_bad_step_cannot_be_noted(
    keep: Keep, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And it is said that the step is offered again."""
    first = keep()
    first.step_done(lambda: None)
    again = keep()
    (tmp_path / "slots" / "never.new").mkdir()
    again.step_done(lambda: None, loss=float("nan"))
    assert again.counts.not_finite == 1
    assert "step 1 led to a loss that is no number, and is offered again" in capsys.readouterr().err


def test_a_rank_that_an_exception_ends_waits_for_no_other(
    keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`finally: checkpoints.close()` would keep its error back for half an hour."""
    checkpoints = keep()
    asked: list[int] = []
    monkeypatch.setattr(Ranks, "lowest", lambda _, value: asked.append(value))
    with pytest.raises(KeyError):
        _fail_and_close(checkpoints)
    assert asked == []
    checkpoints.close(wait_s=0)
    assert len(asked) == 1


def _fail_and_close(checkpoints: StepCheckpoints) -> None:
    try:
        raise KeyError("the script's own")
    finally:
        checkpoints.close()


class Position:
    """A data position that takes a state of its own size only."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.broken = False

    def state_dict(self) -> dict[str, object]:
        if self.broken:
            raise RuntimeError("the queue is gone")
        return {"size": self.size}

    def load_state_dict(self, state: dict[str, object]) -> None:
        if state["size"] != self.size:
            raise ValueError("of another size")


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
