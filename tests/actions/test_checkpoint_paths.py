"""No node chooses what the ranks load: only the job's own checkpoints, by their own names."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.actions.contract import NothingDone
from brctl.actions.job.ckpt_select import checkpoints_in
from brctl.actions.job.restart import JobRestart
from brctl.model.command import Outcome
from brctl.model.jobs.checkpoint_path import is_checkpoint_of, is_named_for
from brctl.model.jobs.job import example_job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from tests.fakes.run_context import fake_context

MOST_S = 30.0
"""Of CPU; all of those names would take an hour."""
EVIL = ["/evil", "../evil", "step-5/../../evil", "step-", "step--5", "step-5 ", "step-٥", "", "."]


def _report(*rows: tuple[str, Value]) -> NodeReport:
    measured = tuple(
        Measurement("job.checkpoint.step", f"ckpt:{name}", step) for name, step in rows
    )
    result = CheckResult("job.checkpoint", ProbeStatus.MEASURED, measured)
    return NodeReport("n1", Outcome.ANSWERED, (result,))


@pytest.mark.parametrize("name", EVIL)
def test_a_name_that_is_no_checkpoints_is_not_offered(name: str) -> None:
    """Whatever step the node says it is of."""
    job = example_job()
    assert not any(is_named_for(job, name, step) for step in (0, 5, 10**6))
    found = checkpoints_in(job, _report((name, 10**6), ("step-0005", 5)))
    assert found[0]["name"] == "step-0005"
    assert len(found) == 1


def test_a_node_that_names_checkpoints_without_end_is_read_in_bounded_time() -> None:
    """Each name is matched against the job's own pattern, whose wildcards share its letters."""
    job = replace(example_job(), checkpoint_layout="torch-save", checkpoint_pattern="a*-*-*{step}")
    flood = [(f"{'a-' * 70}!{number}", number) for number in range(20_000)]
    began = time.process_time()
    assert checkpoints_in(job, _report(("a--5", 5), *flood))[0]["name"] == "a--5"
    assert time.process_time() - began < MOST_S


@pytest.mark.parametrize("step", [6, True, "5", 5.0])
def test_a_name_and_a_step_that_differ_are_not_believed(step: Value) -> None:
    """Nor a step that is no whole number."""
    assert checkpoints_in(example_job(), _report(("step-5", step))) == []


@pytest.mark.parametrize(
    "path", ["/evil", "/evil/step-5", "/ckpt/../evil/step-5", "/ckpt/sub/step-5", "step-5", "/ckpt"]
)
def test_a_path_outside_the_jobs_directory_is_none_of_its_checkpoints(path: str) -> None:
    """Only folders directly below it, by their names."""
    assert not is_checkpoint_of(example_job(), path)
    own = f"{example_job().checkpoint_dir}/step-00000005"
    assert is_checkpoint_of(example_job(), own)


async def test_ranks_are_not_started_from_anything_else(tmp_path: Path) -> None:
    """The last look is where they start: a plan may have been saved before, or written by hand."""
    context = fake_context(tmp_path)
    with pytest.raises(NothingDone, match="'/evil' is no checkpoint of job demo"):
        await JobRestart().apply(context, {"job": "demo", "checkpoint": "/evil"})
