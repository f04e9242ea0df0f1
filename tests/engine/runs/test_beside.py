"""`joined_before`: a step that only looks runs beside the next ones, and is over in time."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest, save_request
from brctl.journal.store import read_journal
from brctl.library.playbooks import read_playbook
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.runs.event import EventType
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth
from brctl.playbook.steps import StepState
from tests.fakes.run_context import FakeContext, FakeSweeps, fake_context
from tests.fakes.run_here import carry

BESIDE = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: beside, title: Look beside the next steps, risk: low}
steps:
  - id: look
    uses: check.run
    with: {nodes: n1}
    safety: read
    timeout: 60s
    retry: {times: 0}
    on_failure: continue
    joined_before: mark
  - id: ckpt
    uses: ckpt.select
    with: {job: demo}
    safety: read
  - id: mark
    uses: node.cordon
    with: {nodes: n2, reason: test}
    safety: reversible
    undo: auto
"""


@dataclass
class LateSweeps(FakeSweeps):
    """Nodes are not examined before somebody asks for checkpoints."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        await self.asked.wait()
        return await super().examine(nodes, level)

    async def ask(
        self, node: str, check: str, job: Job | None, parameters: Mapping[str, object]
    ) -> NodeReport:
        self.asked.set()
        return await super().ask(node, check, job, parameters)


def late(folder: Path) -> FakeContext:
    context = fake_context(folder)
    assert isinstance(context.sweeps, FakeSweeps)
    return replace(context, sweeps=LateSweeps(context.sweeps.world, context.sweeps.checkpoints))


def made(context: FakeContext, text: str = BESIDE) -> Path:
    playbook = read_playbook(text.encode(), "beside.yaml")
    prepared = asyncio.run(prepare(context, playbook))
    return create_run(context, prepared, RunRequest("ann", yes=True))


def lines(run_dir: Path) -> list[str]:
    """Intents and results in the order of the journal."""
    kinds = {EventType.STEP_INTENT: "begin", EventType.STEP_RESULT: "end"}
    return [
        f"{kinds[e.type]} {e.fields['step']}"
        for e in read_journal(run_dir).events
        if e.type in kinds
    ]


def test_the_next_step_does_not_wait_and_the_named_one_does(tmp_path: Path) -> None:
    """Were the next step to wait, the look would end only by its timeout, and would have failed."""
    context = late(tmp_path)
    run_dir = made(context)
    assert carry(context, run_dir) is ExitCode.OK
    told = lines(run_dir)
    assert told[:2] == ["begin look", "begin ckpt"]
    assert set(told[2:4]) == {"end look", "end ckpt"}
    assert told[4:] == ["begin mark", "end mark"]
    assert read_run(run_dir).record.in_state(StepState.DONE) == ("look", "ckpt", "mark")


def test_a_look_that_is_not_over_in_its_time_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    """Nobody asks for checkpoints here, so that nobody is ever examined."""
    context = late(tmp_path)
    start, end = BESIDE.index("  - id: ckpt"), BESIDE.index("  - id: mark")
    text = BESIDE[:start] + BESIDE[end:]
    text = text.replace("timeout: 60s", "timeout: 6s").replace("mark\n", "end\n", 1)
    run_dir = made(context, text)
    assert carry(context, run_dir) is ExitCode.OK
    assert lines(run_dir)[:2] == ["begin look", "begin mark"]
    assert set(lines(run_dir)[2:]) == {"end mark", "end look"}
    look = read_run(run_dir).record.steps["look"]
    assert (look.state, look.error) == (StepState.FAILED, "not done within 6 s")


def test_its_result_is_written_before_a_failure_is_taken_back(tmp_path: Path) -> None:
    """The rollback reads a record in which nothing runs any more."""
    context = late(tmp_path)
    with context.world.change() as data:
        data["dead"] = ["n1", "n2", "n3", "n4"]
    run_dir = made(context, BESIDE.replace("joined_before: mark", "joined_before: end"))
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    assert "end look" in lines(run_dir)
    assert read_run(run_dir).record.in_state(StepState.RUNNING, StepState.UNCERTAIN) == ()


def test_a_look_that_was_cut_off_is_not_looked_at_again_by_a_rollback(tmp_path: Path) -> None:
    """Its process died; the run is taken back, and the journal says that nothing was captured."""
    context = late(tmp_path)
    run_dir = made(context)
    journal = run_dir / "events.ndjson"
    assert carry(context, run_dir) is ExitCode.OK
    whole = journal.read_bytes().splitlines(keepends=True)
    begun = next(n for n, line in enumerate(whole) if b'"step":"look"' in line.replace(b" ", b""))
    journal.write_bytes(b"".join(whole[: begun + 1]))
    (run_dir / "result.json").unlink()
    save_request(run_dir, RunRequest("ann", undo=True))
    carry(context, run_dir)
    look = read_run(run_dir).record.steps["look"]
    assert look.state is StepState.SKIPPED
    assert "not captured" in look.say
