"""A diagnosis of a job whose step is late waits until the job stands still, or goes on."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.application import diagnose as module
from brctl.engine.application.diagnose import DiagnosisScope, diagnose
from brctl.engine.controller.wiring import open_controller
from brctl.engine.job.diagnose import Diagnosis
from brctl.evidence.job.unsettled import LookAgain
from brctl.library.config import load_settings
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.view.verdict import late_line
from tests.fakes.nodes import NOW
from tests.fakes.run_context import example_verdict
from tests.fakes.site_files import local_config, write_site

CALM = replace(example_verdict(), fault=FaultClass.NO_FAULT, suspects=(), probability=0.75)
SURE = replace(example_verdict(), fault=FaultClass.GPU_LOST, probability=0.95)


class Looks:
    """A job looked at again and again: the age of its newest step and what is concluded."""

    def __init__(self, answers: Sequence[tuple[float, Verdict]]) -> None:
        self._answers = list(answers)

    async def once(
        self, _controller: object, job: Job, *_: object, level: int = 1, **_k: object
    ) -> Diagnosis:
        age_s, verdict = self._answers.pop(0)
        ranks = (RankView(0, job.nodes[0], alive=True, step=16, step_s=0.1),)
        status = JobStatus(job, ranks, 16, age_s, stalled=age_s > job.stall_after_s, silent=())
        return Diagnosis(Sweep("S-1", level, (), NOW, 1.0, ()), status, (verdict,))

    @property
    def left(self) -> int:
        return len(self._answers)


INVENTORY = "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes: {n1: {}}\n"
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n1
launch: [train]
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER/logs
progress: FOLDER/progress
stall_after: 20s
"""


@pytest.mark.parametrize(
    ("first", "level", "waited_s"),
    [
        ((8.0, CALM), 1, [12.0]),
        ((0.2, CALM), 1, []),
        ((8.0, SURE), 1, []),
        ((8.0, CALM), 2, []),
    ],
)
def test_a_late_step_is_waited_for_unless_a_cause_is_found_or_the_look_is_heavy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[float, Verdict],
    level: int,
    waited_s: list[float],
) -> None:
    """A hang of eight seconds looked like a job that makes progress, and dx was typed again."""
    looks, waited = Looks([first, (21.0, SURE)]), list[float]()
    config = write_site(tmp_path, local_config("job"), INVENTORY, job=JOB)

    async def wait(status: JobStatus, again: LookAgain) -> None:
        assert late_line(status) == "no progress for 8.0 s, a step usually takes 0.1 s"
        waited.append(again.in_s)

    async def look() -> Diagnosis:
        async with open_controller(load_settings(config=config)) as controller:
            job = controller.job(None)
            scope = DiagnosisScope(job, job.nodes)
            return await diagnose(controller, scope, print, level=level, beside_job=True, wait=wait)

    monkeypatch.setattr(module, "diagnose_once", looks.once)
    found = asyncio.run(look())
    assert waited == waited_s
    assert looks.left == (0 if waited_s else 1)
    assert found.verdicts == ((SURE,) if waited_s else (first[1],))
