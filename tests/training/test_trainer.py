"""The lab's training job, run for real: it learns, fails as training fails, and resumes exactly."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brctl.engine.job.flight import analyse_folder
from brctl.evidence.job.data.replays import read_replay
from brctl.model.jobs.hang import SuspectReason
from brctl.model.jobs.replay import Replay
from tests.checks.probes import read
from tests.timeouts import TIMEOUT_S
from tests.training.ranks import Ranks, Starter

pytestmark = pytest.mark.torch
GIVES_UP_S = 20
"""A rank that waits for so long for another ends; a busy machine has held up none for that long."""


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.close()


@pytest.fixture(scope="module")
def whole(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """Four ranks that trained 30 steps without trouble."""
    ranks = Ranks(starter, tmp_path_factory.mktemp("whole"), 4, steps=30)
    try:
        assert ranks.wait_all() == dict.fromkeys(range(4), 0), ranks.log(0)
        yield ranks
    finally:
        ranks.kill()


def test_it_learns_and_saves(whole: Ranks) -> None:
    """The loss falls from that of a guess, and every tenth step is a complete checkpoint."""
    losses = [loss for loss, _ in whole.steps().values()]
    assert len(losses) == 30
    assert sum(losses[-3:]) / 3 < sum(losses[:3]) / 3 - 0.1
    assert [path.name for path in whole.checkpoints()] == [
        "step-00000010", "step-00000020", "step-00000030",
    ]  # fmt: skip
    for path in whole.checkpoints():
        assert (path / ".metadata").exists()
        assert len(list(path.glob("*.distcp"))) == 4


def test_a_finished_rank_says_done(whole: Ranks) -> None:
    """Its last words are step, loss and the time it waited for its peers."""
    actual = whole.progress(3)
    assert (actual["phase"], actual["step"], actual["node"]) == ("done", 30, "n4")
    assert actual["loss_finite"] is True
    assert isinstance(actual["wait_seconds"], float)


def test_a_restart_repeats_the_same_losses(starter: Starter, whole: Ranks, tmp_path: Path) -> None:
    """Resumed at step 10 in another start order, every later loss and norm is the same bits."""
    resumed = Ranks(
        starter,
        tmp_path,
        4,
        steps=20,
        resume_from=whole.directory / "checkpoints" / "step-00000010",
        order=(2, 0, 3, 1),
    )
    try:
        assert resumed.wait_all() == dict.fromkeys(range(4), 0), resumed.log(0)
    finally:
        resumed.kill()
    again, before = resumed.steps(), whole.steps()
    assert list(again) == list(range(11, 21))
    assert all(again[step] == before[step] for step in again)


def test_groups_replay_what_the_job_did(starter: Starter, whole: Ranks, tmp_path: Path) -> None:
    """As many ranks give its losses bit by bit, fewer all of its batches; the job's files stay."""
    said = {}
    for size in (4, 2):
        saved = tmp_path / f"group-{size}" / "checkpoints"
        shutil.copytree(whole.checkpoints()[0], saved / "step-00000010")
        group = Ranks(starter, saved.parent, size, steps=10, data_ranks=4)
        assert set(group.wait_all().values()) == {0}, group.log(0)
        said[size] = [json.loads(group.log(rank).splitlines()[-1]) for rank in range(size)]
        assert [path.name for path in group.checkpoints()] == ["step-00000010"]
        assert group.steps() == {}
    loss = whole.steps()[20][0]
    assert [row["loss"] for row in said[4]] == [loss] * 4
    assert [row["loss"] for row in said[2]] == [pytest.approx(loss, rel=1e-5)] * 2
    assert {row["first_step"] for row in said[2] + said[4]} == {11}
    assert all(len({row["digest"] for row in rows}) == 1 for rows in said.values())


@pytest.mark.parametrize("on_loader", ["", "shadow"])
def test_an_old_loader_state_shows_in_the_steps_that_are_replayed(
    starter: Starter, tmp_path: Path, on_loader: str
) -> None:
    """Rank 1's state lags three batches behind in the checkpoint; rank 0's is right."""
    (tmp_path / "faults-1.json").write_text('{"loader_rewound": 3}')
    for step in (0, 4):
        resume_from = tmp_path / "checkpoints" / f"step-{step:08d}" if step else None
        ranks = Ranks(
            starter, tmp_path, 2, resume_from=resume_from, steps=6, checkpoint_every=4,
            on_loader=on_loader,
        )  # fmt: skip
        try:
            assert ranks.wait_all() == {0: 0, 1: 0}, ranks.log(0)
        finally:
            ranks.kill()
    for rank in (0, 1):
        (tmp_path / f"rank-{rank:05d}.log").write_text("")
    places = {"log_dir": str(tmp_path), "progress_dir": str(tmp_path / "progress")}
    found = read("job.ranks", {"ranks": [0, 1], **places}).values
    replays = [read_replay(str(found["job.rank.replay", f"rank:{rank}"])) for rank in (0, 1)]
    assert replays == [Replay(5, 2), Replay(5, 1, 5, 3, 3 * 4)]


def test_a_supervised_loader_that_is_killed_costs_neither_rank_nor_sample(
    starter: Starter, tmp_path: Path
) -> None:
    """The losses are those of a run whose loader was left alone, under another policy."""
    killed = Ranks(starter, tmp_path / "killed", 1, on_loader="shadow", pace_s=0.1)
    try:
        _until(lambda: len(killed.steps()) >= 2)
        os.kill(min(killed.children(0)), signal.SIGKILL)
        _until(lambda: "batches made anew and found equal" in killed.log(0))
        past = len(killed.steps()) + 1
        _until(lambda: len(killed.steps()) > past)
    finally:
        killed.kill()
    last = max(killed.steps())
    alone = Ranks(starter, tmp_path / "alone", 1, on_loader="respawn", steps=last)
    try:
        assert alone.wait(0) == 0, alone.log(0)
    finally:
        alone.kill()
    assert killed.steps() == alone.steps()


def test_a_loader_state_of_another_number_of_ranks_is_said_and_never_taken(
    starter: Starter, whole: Ranks, tmp_path: Path
) -> None:
    """Where batches are counted training goes on; where only the state knows, it must not."""
    four = whole.directory / "checkpoints" / "step-00000030"
    said = "rank-00000.json is of 4 ranks that read data, this job has 1"
    refused = "has no state of this rank's loader: start from one that has"
    for on_loader, status in (("", 0), ("respawn", 1)):
        ranks = Ranks(
            starter, tmp_path, 1, resume_from=four, steps=31, on_loader=on_loader,
            checkpoint_every=1000,
        )  # fmt: skip
        try:
            assert ranks.wait(0) == status
        finally:
            ranks.kill()
        assert said in ranks.log(0)
        assert (refused in ranks.log(0)) is bool(on_loader)


@pytest.fixture
def pair(starter: Starter, tmp_path: Path) -> Iterator[Ranks]:
    """Two ranks that train until stopped."""
    yield from _training(Ranks(starter, tmp_path, 2, checkpoint_every=1000))


@pytest.fixture
def impatient(starter: Starter, tmp_path: Path) -> Iterator[Ranks]:
    """As `pair`; who waits for another for longer than a busy machine makes it, ends."""
    ranks = Ranks(starter, tmp_path, 2, checkpoint_every=1000, collective_timeout_s=GIVES_UP_S)
    yield from _training(ranks)


def _training(ranks: Ranks) -> Iterator[Ranks]:
    try:
        _until(lambda: len(ranks.steps()) >= 3)
        yield ranks
    finally:
        ranks.kill()


def test_slow_and_nan_show_on_the_rank_that_has_them(pair: Ranks) -> None:
    """Peers wait for a slow rank; a NaN is in its own loss a step before anybody else's."""
    pair.faults(1).write_text('{"slow_s": 0.4}')
    # Of one step: in others the machine may hold up either.
    _until(lambda: _wait_s(pair, 0) > 0.3 and _wait_s(pair, 1) < 0.2)
    pair.faults(1).write_text('{"nan": true}')
    _until(lambda: all(pair.progress(rank).get("loss_finite") is False for rank in (0, 1)))
    first = [pair.progress(rank)["first_nonfinite_step"] for rank in (0, 1)]
    assert isinstance(first[0], int)
    assert isinstance(first[1], int)
    assert first[0] == first[1] + 1
    assert None in [loss for loss, _ in pair.steps().values()]


def test_a_kill_during_a_save_leaves_it_incomplete(starter: Starter, tmp_path: Path) -> None:
    """The newest directory has no .metadata, and the one before it is complete."""
    ranks = Ranks(starter, tmp_path, 2, checkpoint_every=1)
    try:
        _until(lambda: len(ranks.checkpoints()) >= 2)
        _until(lambda: _is_held_in_a_save(ranks), pause_s=0.001)
    finally:
        ranks.kill()
    *_, before, newest = ranks.checkpoints()
    assert not (newest / ".metadata").exists()
    assert (before / ".metadata").exists()


def test_a_killed_loader_ends_its_rank_with_the_words_of_pytorch(pair: Ranks) -> None:
    """PyTorch speaks, by its handler of SIGCHLD or by its next look at the queue."""
    os.kill(pair.child(1), signal.SIGKILL)
    assert pair.wait(1) == 1
    words = r"DataLoader worker \(pid(?:\(s\))? \d+\) (?:is killed by signal: Killed|exited unexp)"
    assert re.search(words, pair.log(1)), pair.log(1)[-2000:]


def test_a_rank_in_another_collective_shows_in_the_dumps(pair: Ranks) -> None:
    """Every rank dumps while it hangs: a barrier stands where the others average gradients."""
    pair.faults(1).write_text('{"mismatch": true}')
    # A step that took long on a busy machine was dumped, too; the hang's own dumps replace those.
    _until(lambda: _suspected(pair) == {SuspectReason.MISMATCH})
    assert pair.progress(1)["phase"] == "all_reduce"


def test_a_hanging_rank_stops_everybody(impatient: Ranks) -> None:
    """The culprit never enters the all-reduce; the survivor ends with gloo's time-out text."""
    impatient.faults(1).write_text('{"hang": true}')
    assert impatient.wait(0) != 0
    assert f"Timed out waiting {GIVES_UP_S * 1000:.0f}ms for" in impatient.log(0)
    assert impatient.ended(1) is None
    assert impatient.progress(1)["phase"] == "backward"
    assert impatient.progress(0)["phase"] == "all_reduce"


def test_a_crash_has_its_cause_in_one_log_only(pair: Ranks) -> None:
    """The exception is PyTorch's own; the peer only says that a connection closed."""
    pair.faults(1).write_text('{"crash": true}')
    assert all(status == 1 for status in pair.wait_all().values())
    assert "IndexError: index out of range in self" in pair.log(1)
    assert "IndexError" not in pair.log(0)
    assert "Connection closed by peer" in pair.log(0) or "Connection reset" in pair.log(0)


def test_a_broken_gpu_ends_its_rank_with_cudas_text(pair: Ranks) -> None:
    """What PyTorch raises on an uncorrectable memory error is in the rank's log."""
    pair.faults(1).write_text('{"cuda_error": "uncorrectable ECC error encountered"}')
    assert all(status == 1 for status in pair.wait_all().values())
    assert "RuntimeError: CUDA error: uncorrectable ECC error encountered" in pair.log(1)


def _wait_s(ranks: Ranks, rank: int) -> float:
    wait_s = ranks.progress(rank).get("wait_seconds")
    return wait_s if isinstance(wait_s, float) else 0.0


def _suspected(ranks: Ranks) -> set[SuspectReason]:
    """What the dumps say, once both ranks have written one."""
    if not all(ranks.dump(rank).exists() for rank in (0, 1)):
        return set()
    return {each.reason for each in analyse_folder(ranks.dump(0).parent).suspects}


def _is_held_in_a_save(ranks: Ranks) -> bool:
    """Stop all ranks; when that hit the middle of a save they stay stopped, else they go on."""
    if (ranks.checkpoints()[-1] / ".metadata").exists():
        return False
    ranks.send(signal.SIGSTOP)
    if not (ranks.checkpoints()[-1] / ".metadata").exists():
        return True
    ranks.send(signal.SIGCONT)
    return False


def _until(true: Callable[[], bool], deadline_s: float = TIMEOUT_S, pause_s: float = 0.05) -> None:
    limit_s = time.monotonic() + deadline_s
    while not true():
        assert time.monotonic() < limit_s
        time.sleep(pause_s)
