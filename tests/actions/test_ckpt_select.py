"""What a restart goes on from where the ranks keep every step in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pytest

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed
from brctl.actions.job.ckpt_select import CkptSelect
from brctl.evidence.job.kept_steps import CHECK
from brctl.model.command import Outcome
from brctl.model.jobs.job import Job, example_job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.slots import SlotFile
from tests.checks.probes import read
from tests.fakes.run_context import Checkpoints, FakeJobs, FakeSweeps, fake_context
from tests.training.checkpoints.filler import CAPACITY, fill

JOB = replace(
    example_job(), name="toy", nodes=("n1", "n2"), axes=(("dp", 2),),
    slot_directory=PurePosixPath("/dev/shm/toy"),
)  # fmt: skip
SAVED = [(40, False), (38, True)]


@dataclass
class OneJob(FakeJobs):
    """The job of these tests; see `Jobs`."""

    async def get(self, name: str) -> Job:
        return JOB


@dataclass
class MemorySweeps(FakeSweeps):
    """Each node's memory is a folder, which the real probe reads; see `Sweeps`."""

    memory: Path = Path()
    dead: Sequence[str] = ()

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        if node in self.dead:
            return NodeReport(node, Outcome.UNREACHABLE, detail="no answer")
        if check != CHECK:
            return await super().ask(node, check, job, parameters)
        told = {"directory": str(self.memory / node), "job": "toy", "world_size": 2, **parameters}
        rows = [Measurement(*key, value) for key, value in read(check, told).values.items()]
        return NodeReport(
            node, Outcome.ANSWERED, (CheckResult(check, ProbeStatus.MEASURED, tuple(rows)),)
        )


def keep(memory: Path, node: str, rank: int, *steps: int, own: bool) -> SlotFile:
    """Both ranks of the toy job have one header but for the rank."""
    directory = SlotDirectory(memory / node)
    directory.path.mkdir(exist_ok=True)
    file = SlotFile.create(directory.own(rank) if own else directory.peer(rank), CAPACITY)
    for slot, step in zip(file.slots, steps, strict=False):
        fill(slot, step, rank=rank)
    return file


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """Ranks 0 and 1 have steps 43 and 44 on their own node and on the other."""
    folder = tmp_path / "memory"
    folder.mkdir()
    for rank, (home, away) in enumerate((("n1", "n2"), ("n2", "n1"))):
        keep(folder, home, rank, 43, 44, own=True)
        keep(folder, away, rank, 43, 44, own=False)
    return folder


def context_of(
    folder: Path, memory: Path, *, saved: Checkpoints = lambda: SAVED, dead: Sequence[str] = ()
) -> RunContext:
    context = fake_context(folder)
    return replace(
        context,
        jobs=OneJob(context.world, folder / "state"),
        sweeps=MemorySweeps(context.world, saved, memory, dead),
    )


async def test_the_newest_step_in_memory_is_taken_and_the_checkpoint_stands_behind_it(
    tmp_path: Path, memory: Path
) -> None:
    """The path is what the ranks fall back to; the step is the one training goes on from."""
    found = await CkptSelect().apply(context_of(tmp_path, memory), {"job": "toy"})
    assert found.out == {"path": "/ckpt/step-00000038", "step": 44}
    assert found.say.startswith("step 44 in memory, 2 of 2 ranks on their own nodes; else step 38")


async def test_a_lost_node_s_step_comes_from_its_copy(tmp_path: Path, memory: Path) -> None:
    """The suspect is not asked."""
    without = {"job": "toy", "reachable_without": ["n1"]}
    found = await CkptSelect().apply(context_of(tmp_path, memory, dead=["n1"]), without)
    assert found.out["step"] == 44
    assert found.say.startswith("step 44 in memory, 1 of 2 ranks on their own nodes")


async def test_a_damaged_copy_leaves_the_step_before(tmp_path: Path, memory: Path) -> None:
    """Where the other copy of that step is gone with its node."""
    file = SlotFile.open(SlotDirectory(memory / "n2").peer(0))
    file.slots[1].payload[7] ^= 1
    without = {"job": "toy", "reachable_without": ["n1"]}
    found = await CkptSelect().apply(context_of(tmp_path, memory), without)
    assert found.out["step"] == 43


async def test_a_damaged_newest_step_is_found_behind_higher_steps_of_an_earlier_start(
    tmp_path: Path, memory: Path
) -> None:
    """A start that was thrown away came to 43 and 44; the next one, from a checkpoint, is at 40."""
    for folder, name in (("n1", "own"), ("n2", "own"), ("n2", "peer"), ("n1", "peer")):
        directory = SlotDirectory(memory / folder)
        rank = int((folder == "n2") == (name == "own"))
        path = directory.own(rank) if name == "own" else directory.peer(rank)
        file = SlotFile.open(path)
        fill(file.slots[0], 40, rank=rank, attempt=2)
        if rank == 0:
            file.slots[0].payload[7] ^= 1
    found = await CkptSelect().apply(context_of(tmp_path, memory), {"job": "toy"})
    assert found.out["step"] == 44


async def test_memory_alone_suffices_and_nothing_anywhere_is_said(
    tmp_path: Path, memory: Path
) -> None:
    """No checkpoint is no obstacle; no copy and no checkpoint is."""
    alone = await CkptSelect().apply(context_of(tmp_path, memory, saved=list), {"job": "toy"})
    assert alone.out == {"path": "", "step": 44}
    with pytest.raises(ActionFailed, match="nothing of rank 0 and 1 more is in memory; none of 0"):
        await CkptSelect().apply(
            context_of(tmp_path, tmp_path / "empty", saved=list), {"job": "toy"}
        )


async def test_a_silent_node_is_named_where_no_step_is_whole(tmp_path: Path, memory: Path) -> None:
    """It may hold what is missing: the checkpoint is taken, and a person can wait instead."""
    for path in (memory / "n1").glob("*.peer"):
        path.unlink()
    found = await CkptSelect().apply(context_of(tmp_path, memory, dead=["n2"]), {"job": "toy"})
    assert found.out == {"path": "/ckpt/step-00000038", "step": 38}
    assert found.say.endswith("nothing of rank 1 is in memory, nothing is known of n2")
