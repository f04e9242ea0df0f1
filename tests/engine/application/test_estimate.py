"""A plan's cost is looked up: in the journals of earlier runs, on a node, in the standby pool."""

import asyncio
from dataclasses import replace
from pathlib import Path

from brctl.engine.application.estimate import with_estimate
from brctl.engine.application.runs import all_playbooks
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.estimate import LostSteps
from brctl.model.runs.playbook import Json
from tests.fakes.run_context import example_verdict, fake_context
from tests.fakes.run_here import carry

SWAP: dict[str, Json] = {"suspects": ["n3"], "job": "demo"}


def test_the_first_plan_knows_its_deadlines_and_the_second_what_the_first_took(
    tmp_path: Path,
) -> None:
    context = fake_context(tmp_path)
    playbook = all_playbooks(())["swap-and-resume"]
    planned = asyncio.run(prepare(context, playbook, None, SWAP))
    verdict = replace(example_verdict(), job="demo", job_step=41)
    first = asyncio.run(with_estimate(context, planned, verdict)).plan.estimate
    assert first is not None
    assert first.took is None
    assert first.at_most_s == planned.plan.longest_path_s
    assert first.loss == LostSteps(checkpoint_step=38, checkpoint_age_s=None, stopped_step=41)
    assert first.loss.steps == 3
    assert first.standbys_left == 1

    run_dir = create_run(context, planned, RunRequest(by="ann", yes=True, typed="swap 1"))
    assert carry(context, run_dir) is ExitCode.OK
    second = asyncio.run(with_estimate(context, planned, None)).plan.estimate
    assert second is not None
    assert second.took is not None
    assert (len(second.took.seconds), second.took.same_job) == (1, True)
