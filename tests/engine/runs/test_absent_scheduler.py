"""The scheduler's API goes away for 20 s in each step of a swap: the run waits for it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from brctl.backends.contract import Backend
from brctl.backends.patient import PatientBackend
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import read_journal
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from tests.fakes.absent_backend import AbsentBackend
from tests.fakes.run_context import FakeContext, example_verdict, fake_context
from tests.fakes.run_here import carry

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
ASKING = ("cordon", "reserve", "stop", "swap", "restart")
"""The steps that ask the scheduler for anything."""


class Outage:
    """The API is gone from the moment a step begins, for some seconds of the run's clock."""

    def __init__(self, context: FakeContext, step: str, seconds: float) -> None:
        self._context = context
        self._step = step
        self._seconds = seconds
        self._began_at: float | None = None
        self.run_dir = Path()

    def __call__(self) -> bool:
        now = float(self._context.world.read()["seconds"])
        if self._began_at is None and self._has_begun():
            self._began_at = now
        return self._began_at is not None and now < self._began_at + self._seconds

    def _has_begun(self) -> bool:
        events = read_journal(self.run_dir).events if self.run_dir.name else ()
        return any(
            e.type is EventType.STEP_INTENT and e.fields["step"] == self._step for e in events
        )


def swap_while_away(folder: Path, step: str, seconds: float) -> tuple[FakeContext, Path, ExitCode]:
    context = fake_context(folder)
    prepared = asyncio.run(prepare(context, SWAP, example_verdict()))
    outage = Outage(context, step, seconds)
    absent = AbsentBackend(context.backend, outage)
    patient = PatientBackend(cast(Backend, absent), context.clock.pause)
    outage.run_dir = create_run(context, prepared, RunRequest(by="oncall"))
    code = carry(replace(context, backend=patient), outage.run_dir)
    assert absent.refused > 1
    return context, outage.run_dir, code


@pytest.mark.parametrize("step", ASKING)
def test_an_api_that_is_away_for_20_s_only_costs_that_time(tmp_path: Path, step: str) -> None:
    """The step is asked again until it answers, and every rank runs at the end."""
    context, run_dir, code = swap_while_away(tmp_path, step, 20.0)
    assert code is ExitCode.OK, read_run(run_dir).record
    data = context.world.read()
    assert len(data["ranks"]) == 4
    assert data["reservations"] == {}
    effects = data["effects"]
    assert len(effects) == len(set(effects))


@pytest.mark.parametrize("step", ["stop", "swap", "restart"])
def test_an_api_that_stays_away_ends_with_people_told(tmp_path: Path, step: str) -> None:
    """A job that stays stopped is said aloud: exit 8, and the page names the step."""
    _, run_dir, code = swap_while_away(tmp_path, step, 1e6)
    assert code is ExitCode.NEEDS_HUMAN
    record = read_run(run_dir).record
    assert record.failed_step == step
    assert "was refused" in record.failed_error
    assert "notify.page" in {e.fields.get("uses") for e in read_journal(run_dir).events}
