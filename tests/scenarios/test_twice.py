"""Every shipped playbook run twice in a row: the second time nothing changes.

The cluster is a fake one in a file. What was asked to stop and start a job does so each time it is
asked; such a playbook never does it without a person's yes.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brctl.actions.context import RunContext
from brctl.engine.runs.carry_out import carry_out
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import Journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import load_playbooks
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.playbook import GuardSpec, Json, Need
from brctl.playbook.approvals import confirmation_text
from tests.fakes.run_context import FakeContext, fake_context

SHIPPED = load_playbooks([shipped_dir("playbooks")])
CORDONED = {"n1": {"owner": "brctl:R-0000", "reason": "x", "at": "2026-07-05T12:00:00.000Z"}}
JOB: dict[str, Json] = {"job": "demo"}

UNCHANGED: Mapping[str, tuple[dict[str, Json], dict[str, Any]]] = {
    "cordon": ({"nodes": "n1"}, {}),
    "uncordon": ({"nodes": "n1"}, {"cordons": CORDONED}),
    "evacuate": ({"nodes": "n[3-4]"}, {"spare": []}),
    "drain": ({"nodes": "n1"}, {}),
    "label": ({"nodes": "n1", "set": "ticket=RMA-1"}, {}),
    "return-to-service": (
        {"nodes": "s1", "golden": ""},
        {"cordons": {"s1": CORDONED["n1"]}},
    ),
    "standby-refill": (
        {"candidates": "n1", "size": 2},
        {"nodes": ["s1", "n2", "n3", "n4"]},
    ),
    "start-job": (JOB, {"ranks": {}}),
    "stop-job": (JOB, {}),
    "swap-and-resume": ({"suspects": "n3", **JOB}, {}),
    "group-evict": ({"suspects": "n3", **JOB}, {}),
    "replay": (JOB, {}),
}
"""Values, and what the world is like before the first time."""

REPEATS: Mapping[str, dict[str, Json]] = {
    "restart-in-place": JOB,
    "stop-time-checks": JOB,
    "locate-corruption": JOB,
    "bisect-then-swap": JOB,
    "rank-order": {**JOB, "before": "n[1-4]", "after": ["n2", "n1", "n3", "n4"]},
    "reset-gpu": {"nodes": "s1"},
}
"""They stop and start the job, or reset GPUs: that is what they were asked for, each time."""

NEED_CODE = frozenset({"hot-update", "code-rollback"})
"""This job has no versions of its code, so there is nothing to change, not even once."""


def run(context: FakeContext, name: str, values: dict[str, Json]) -> tuple[ExitCode, bool]:
    """The exit code, and whether any step said that it changed something."""

    @asynccontextmanager
    async def open_fake(_request: RunRequest) -> AsyncIterator[RunContext]:
        yield context

    playbook = SHIPPED[name]
    try:
        prepared = asyncio.run(prepare(context, playbook, None, values))
        job = str(prepared.inputs.job["name"])
        arguments = confirmation_text(playbook, len(prepared.plan.nodes), job)
        run_dir = create_run(context, prepared, RunRequest("cron", yes=True, typed=arguments))
    except GuardError:
        return ExitCode.REFUSED, False
    code = asyncio.run(carry_out(run_dir, open_fake, Journal))
    return code, any(step.changed for step in read_run(run_dir).record.steps.values())


@pytest.mark.parametrize("name", sorted(UNCHANGED))
def test_the_second_time_nothing_changes(name: str, tmp_path: Path) -> None:
    """Done already, or refused because it is done already; the world is the same."""
    values, before = UNCHANGED[name]
    context = fake_context(tmp_path)
    context = replace(
        context, guards=SiteGuards((GuardSpec("blast_radius", {"max_nodes": 6}, "g.yaml:1"),))
    )
    with context.world.change() as data:
        data |= {"dead": [], **before}
    assert run(context, name, values) == (ExitCode.OK, True)
    after = context.world.read()["effects"]
    code, changed = run(context, name, values)
    assert code in (ExitCode.OK, ExitCode.REFUSED)
    assert not changed
    assert context.world.read()["effects"] == after


@pytest.mark.parametrize("name", sorted(REPEATS))
def test_what_acts_each_time_asks_a_person_each_time(name: str, tmp_path: Path) -> None:
    """So that a loop somewhere can never do it again and again."""
    plan = asyncio.run(prepare(fake_context(tmp_path), SHIPPED[name], None, REPEATS[name])).plan
    assert plan.people is not Need.NONE


@pytest.mark.parametrize("name", sorted(NEED_CODE))
def test_without_a_code_change_there_is_nothing_to_do(name: str, tmp_path: Path) -> None:
    """Refused before the job is touched."""
    context = fake_context(tmp_path)
    assert run(context, name, JOB) == (ExitCode.ROLLED_BACK, False)
    assert context.world.read()["effects"] == []


def test_every_shipped_playbook_is_in_one_of_the_tables() -> None:
    """A new playbook cannot be forgotten here."""
    assert set(SHIPPED) == {*UNCHANGED, *REPEATS, *NEED_CODE}
