"""`replay plan|run` as the engine does it, with real processes; the node's name makes it bad."""

import io
import json
from pathlib import Path

import pytest

from brctl.engine.application.replay import ReplayRequest, plan_replay, replay
from brctl.engine.search.replay_runner import COMMAND_VARIABLE
from brctl.library.config import Settings, load_settings
from brctl.model.errors import UsageError
from tests.engine.application.test_by_hand import CONFIG
from tests.timeouts import TIMEOUT_S

INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {}, n2: {}, n3: {}, n4: {}}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: llm
nodes: n[1-4]
launch: [/bin/true]
workdir: /
checkpoint: {directory: /tmp/ckpt}
logs: /tmp/logs
progress: /tmp/progress
"""
BAD = f"environment: {{{COMMAND_VARIABLE}: '[ \"$BRCTL_NODE\" != n3 ]'}}\n"


def four_nodes(folder: Path, job: str = JOB + BAD) -> Settings:
    """Four nodes, all this machine, with a job on them."""
    (folder / "config.yaml").write_text(CONFIG.replace(", vision.yaml", ""))
    (folder / "inventory.yaml").write_text(INVENTORY)
    (folder / "llm.yaml").write_text(job)
    return load_settings({}, config=folder / "config.yaml")


async def test_a_plan_names_the_groups_and_runs_nothing(tmp_path: Path) -> None:
    settings = four_nodes(tmp_path)
    planned = await plan_replay(settings, ReplayRequest())
    assert planned.phases is None
    assert sorted(n for group in planned.first_round for n in group) == ["n1", "n2", "n3", "n4"]
    both = await plan_replay(settings, ReplayRequest(dual=True))
    assert both.phases is not None
    assert not (settings.state_dir / "bisect").exists()


@pytest.mark.parametrize("dual", [True, False])
async def test_the_machine_whose_replay_fails_is_found_and_recorded(
    tmp_path: Path, dual: bool
) -> None:
    """By the search and by the paper's phases; every round is told and kept."""
    settings, lines = four_nodes(tmp_path), io.StringIO()
    rounds: list[int] = []
    request = ReplayRequest(dual=dual, budget_s=600, round_deadline_s=TIMEOUT_S)
    found = await replay(settings, request, (lines,), lambda report: rounds.append(report.number))
    assert [f.members for f in found.result.conclusion.findings] == [("n3",)]
    assert rounds == [report.number for report in found.result.rounds]
    assert json.loads(lines.getvalue().splitlines()[-1])


async def test_a_job_that_does_not_say_how_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not say how to replay"):
        await replay(four_nodes(tmp_path, JOB), ReplayRequest())
