"""A finished run says what to type to take it back."""

import asyncio
import shlex
from pathlib import Path

import pytest

from brctl.engine.application.runs import all_playbooks
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import RunState
from brctl.view.runs.run import run_page
from brctl.view.runs.way_back import NO_WAY_BACK, WayBack, way_back
from tests.fakes.run_context import fake_context
from tests.fakes.run_here import carry


@pytest.mark.parametrize(
    ("name", "values", "expected", "by_another_change"),
    [
        ("swap-and-resume", {"suspects": ["n3"], "job": "demo"},
         ["brctl uncordon n3", "brctl swap s1 --with n3 -m 'undo R-0001'"], True),
        ("cordon", {"nodes": ["n3"]}, ["brctl uncordon n3"], False),
    ],
)  # fmt: skip
def test_a_finished_run_is_taken_back_by_the_commands_it_names(
    tmp_path: Path,
    name: str,
    values: dict[str, Json],
    expected: list[str],
    by_another_change: bool,
) -> None:
    """A swap cannot be rolled back once training goes on, so the message says to swap back."""
    context = fake_context(tmp_path)
    prepared = asyncio.run(prepare(context, all_playbooks(())[name], None, values))
    run_dir = create_run(context, prepared, RunRequest(by="ann", yes=True, typed="swap 1"))
    assert carry(context, run_dir) is ExitCode.OK
    run = read_run(run_dir)
    back = way_back(run.name, run.playbook, run.record, run.state)
    assert back == WayBack(tuple(expected), by_another_change)
    assert all(shlex.split(command)[0] == "brctl" for command in expected)
    assert way_back(run.name, run.playbook, run.record, RunState.NEEDS_HUMAN) == NO_WAY_BACK
    page = run_page(run.name, run.playbook, run.record, run.state, run.events, ())
    assert page.text.splitlines()[-1] == f"undo:  {'; '.join(expected)}"
