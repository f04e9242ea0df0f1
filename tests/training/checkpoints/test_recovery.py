"""Real ranks that die, machines that lose their memory, and what the job resumes from."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from brctl.training.checkpoints.layout import parse_layout
from brctl.training.checkpoints.placement import members
from tests.training.checkpoints.toy_job import Starter, ToyJob

pytestmark = pytest.mark.torch

AXES = "tp=2,pp=2,dp=2"
PACE_S = 0.15


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.close()


@pytest.fixture
def job(starter: Starter, tmp_path: Path) -> Iterator[ToyJob]:
    job = ToyJob(starter, tmp_path, AXES, machines=8, pace_s=PACE_S)
    yield job
    job.close()


@pytest.fixture(scope="module")
def undisturbed(
    starter: Starter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[int, int], tuple[object, object]]]:
    """Loss and weights by rank and step of a run that nothing happened to."""
    job = ToyJob(starter, tmp_path_factory.mktemp("undisturbed"), AXES, machines=8)
    job.start(steps=80)
    job.finish()
    yield bits(job)
    job.close()


def is_saved_after(step: int, job: ToyJob) -> bool:
    """Whether every rank has a newer step whole on its backup."""
    return all(int(str(job.steps(rank)[-1]["backed_up"])) > step for rank in range(job.world))


def bits(job: ToyJob) -> dict[tuple[int, int], tuple[object, object]]:
    return {
        (rank, int(str(line["step"]))): (line["loss"], line["weights"])
        for rank in range(job.world)
        for line in job.steps(rank)
    }


def test_any_tp_pp_or_dp_group_may_go(
    job: ToyJob, undisturbed: dict[tuple[int, int], tuple[object, object]]
) -> None:
    """The twelve groups in turn: resumed from their peers, bits as if nothing had happened."""
    groups = [group for kind in parse_layout(AXES, 1).groups().values() for group in kind]
    assert len(groups) == 12
    observed: dict[tuple[int, int], tuple[object, object]] = {}
    job.start(steps=10_000)
    for group in groups:
        first = job.resumed()
        job.reaches(first + 3)
        # On a busy machine copies come later than steps; without one of this start all is lost.
        job.until(partial(is_saved_after, first, job), "a copy of every rank's state")
        job.crash()
        observed.update(bits(job))
        reached = max(job.last_step(rank) for rank in range(8))
        skipped = int(str(job.steps()[-1]["lagging"]))
        job.lose(members(group))
        job.start(steps=10_000)
        assert reached - 1 - skipped <= job.resumed() <= reached
    job.reaches(job.resumed() + 2)
    job.crash()
    observed.update(bits(job))
    compared = [key for key in observed if key in undisturbed]
    assert len(compared) > 200
    assert all(observed[key] == undisturbed[key] for key in compared)
