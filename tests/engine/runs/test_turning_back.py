"""A step that did nothing needs no rollback, and a rollback that stopped can be turned forward.

The cluster is a fake one in a file, see `tests.fakes.run_context`.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import resume_direction, resume_lists
from brctl.engine.runs.run_files import RunRequest, save_request
from brctl.journal.store import read_journal
from brctl.library.playbooks import load_playbook, read_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from brctl.playbook.steps import StepState
from brctl.view.runs.run import resume_lines
from tests.engine.runs.test_remediate import ONCALL, effects, start
from tests.fakes.run_context import NOON, FakeContext, fake_context
from tests.fakes.run_here import carry

SHIPPED_RESET = load_playbook(shipped_dir("playbooks") / "reset-gpu.yaml")
ESCALATES = (
    b"    on_failure: escalate   # the GPUs are as they were, so the nodes stay out of service\n"
)
RESET = read_playbook(SHIPPED_RESET.text.replace(ESCALATES, b"", 1), "reset.yaml")
"""As shipped, but a reset that fails is rolled back, as by default."""

AGREED = RunRequest("ann", typed="reset 1")


def change(context: FakeContext, **fields: object) -> None:
    with context.world.change() as data:
        data |= fields


def why(run_dir: Path) -> str:
    return str(read_journal(run_dir).events[-1].fields["why"])


def stopped_rollback(folder: Path) -> tuple[FakeContext, Path]:
    """No checkpoint can be read after the swap: it goes back, and the stopped job stays stopped."""
    context = fake_context(folder)
    whole = [(38, True)]
    context.sweeps.checkpoints = lambda: [] if "replace" in str(effects(context)) else whole
    run_dir, code = start(context)
    assert code is ExitCode.NEEDS_HUMAN
    assert why(run_dir) == "stop cannot be undone: none of 0 checkpoints in /ckpt is whole"
    assert read_run(run_dir).record.in_state(StepState.UNDONE) == ("swap", "code")
    context.sweeps.checkpoints = lambda: whole
    return context, run_dir


def test_past_a_stopped_job_a_resume_goes_forward_and_says_so(tmp_path: Path) -> None:
    """What the rollback took back is done again, nothing before it is, and the job runs."""
    context, run_dir = stopped_rollback(tmp_path)
    assert context.world.read()["reservations"]["s1"]["owner"] == "brctl:R-0001"
    run = read_run(run_dir)
    direction = resume_direction(run)
    lines = "\n".join(resume_lines(resume_lists(run, forward=direction.forward), direction.why))
    assert "to do     swap code choose restart prove" in lines
    assert "goes forward again: stop cannot be undone, so the rollback ends there" in lines
    save_request(run_dir, replace(ONCALL, forward=direction.forward))
    assert carry(context, run_dir) is ExitCode.OK
    assert context.world.read()["nodes"] == ["n1", "n2", "s1", "n4"]
    assert effects(context).count("cordon n3") == effects(context).count("stop rank 0") == 1


@pytest.mark.parametrize("looks", ["choose", "prove"])
def test_a_look_that_was_cut_off_is_looked_again_by_who_goes_forward(
    looks: str, tmp_path: Path
) -> None:
    """Its process died, and the rollback ended at the stopped job: it is not OK unlooked."""
    context = fake_context(tmp_path)
    run_dir, code = start(context)
    assert code is ExitCode.OK
    cut_off_at(run_dir, looks)
    save_request(run_dir, replace(ONCALL, undo=True))
    assert carry(context, run_dir) is ExitCode.NEEDS_HUMAN
    save_request(run_dir, replace(ONCALL, forward=True))
    assert carry(context, run_dir) is ExitCode.OK, why(run_dir)
    look = read_run(run_dir).record.steps[looks]
    assert (look.state, look.attempts) == (StepState.DONE, 2)


def cut_off_at(run_dir: Path, step: str) -> None:
    """The journal as it is left by a process that is killed while this step runs."""
    events = read_journal(run_dir).events
    begun = next(
        number
        for number, event in enumerate(events)
        if event.type is EventType.STEP_INTENT and event.fields["step"] == step
    )
    journal = run_dir / "events.ndjson"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: begun + 1]))
    (run_dir / "result.json").unlink()


def test_a_forward_run_that_fails_again_rolls_back_again_and_can_be_turned_again(
    tmp_path: Path,
) -> None:
    """Nothing remembers the turn but the journal: a request left behind does not turn it twice."""
    context, run_dir = stopped_rollback(tmp_path)
    context.sweeps.checkpoints = lambda: []
    save_request(run_dir, replace(ONCALL, forward=True))
    assert carry(context, run_dir) is ExitCode.NEEDS_HUMAN
    assert read_run(run_dir).record.in_state(StepState.UNDONE) == ("swap", "code")
    context.sweeps.checkpoints = lambda: [(38, True)]
    assert carry(context, run_dir) is ExitCode.OK


def test_a_standby_that_somebody_else_took_meanwhile_is_not_swapped_in(tmp_path: Path) -> None:
    """The refusal names who has it, and the job keeps its nodes."""
    context, run_dir = stopped_rollback(tmp_path)
    asyncio.run(context.backend.release(["s1"], "brctl:R-0001"))
    asyncio.run(context.backend.reserve("s1", "brctl:R-0009", NOON))
    save_request(run_dir, replace(ONCALL, forward=True))
    assert carry(context, run_dir) is ExitCode.NEEDS_HUMAN
    assert (
        read_run(run_dir).record.failed_error == "s1 is reserved by brctl:R-0009; nothing was done"
    )
    assert context.world.read()["nodes"] == ["n1", "n2", "n3", "n4"]


def test_a_person_may_finish_the_rollback_instead(tmp_path: Path) -> None:
    """`play rollback` undoes what it can and says again what it cannot."""
    context, run_dir = stopped_rollback(tmp_path)
    assert not resume_direction(read_run(run_dir), undo=True).forward
    save_request(run_dir, replace(ONCALL, undo=True))
    assert carry(context, run_dir) is ExitCode.NEEDS_HUMAN
    assert "stop cannot be undone" in why(run_dir)
    assert not [line for line in effects(context) if line.startswith("start")]


def failed_undo(folder: Path) -> tuple[FakeContext, Path]:
    """Both standbys are sick, and the scheduler is away when the cordon is taken back."""
    context = fake_context(folder)
    change(context, sick=["s1", "s2"])
    uncordon = context.backend.uncordon

    async def away(nodes: object, *more: object) -> None:
        from brctl.model.errors import UnavailableError

        raise UnavailableError("the scheduler does not answer")

    context.backend.uncordon = away  # type: ignore[method-assign]  # one call fails
    run_dir, code = start(context)
    assert code is ExitCode.NEEDS_HUMAN
    context.backend.uncordon = uncordon  # type: ignore[method-assign]  # as it was
    change(context, sick=[])
    return context, run_dir


def test_an_undo_that_failed_is_tried_again_by_default(tmp_path: Path) -> None:
    """Nothing stands in the way of the rollback, so a resume finishes it."""
    context, run_dir = failed_undo(tmp_path)
    direction = resume_direction(read_run(run_dir))
    assert (direction.forward, direction.why) == (False, "tries the rollback again: an undo failed")
    save_request(run_dir, replace(ONCALL, forward=direction.forward))
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    assert "n3" not in context.world.read()["cordons"]


def test_a_person_may_send_it_forward_instead(tmp_path: Path) -> None:
    """The network is back and the standbys are well: `--forward` does the repair after all."""
    context, run_dir = failed_undo(tmp_path)
    direction = resume_direction(read_run(run_dir), forward=True)
    assert direction.forward
    # A person repaired the standbys that the run had found sick.
    change(context, cordons={"n3": context.world.read()["cordons"]["n3"]})
    save_request(run_dir, replace(ONCALL, forward=True))
    assert carry(context, run_dir) is ExitCode.OK, why(run_dir)
    assert context.world.read()["nodes"] == ["n1", "n2", "s1", "n4"]


def test_forward_is_refused_where_no_rollback_stopped(tmp_path: Path) -> None:
    """A run that is through, or that waits, has nothing to turn."""
    run_dir, _ = start(fake_context(tmp_path))
    with pytest.raises(UsageError, match="R-0001 is ok"):
        resume_direction(read_run(run_dir), forward=True)


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        ({"held": {"s1": 4711}}, "processes hold gpu:0 by 4711; end them first; nothing was done"),
        ({"lost_gpus": ["s1"]}, "nobody can tell which processes hold its GPUs"),
    ],
)
def test_a_reset_that_is_refused_before_it_acts_is_rolled_back(
    world: dict[str, object], expected: str, tmp_path: Path
) -> None:
    """Nothing happened to a GPU: the cordon goes, exit is 7, and the sentence says it."""
    context = fake_context(tmp_path)
    change(context, dead=[], **world)
    run_dir, code = start_reset(context)
    assert code is ExitCode.ROLLED_BACK
    assert expected in why(run_dir)
    assert read_run(run_dir).record.steps["reset"].error.endswith("nothing was done")
    assert context.world.read()["cordons"] == {}


def test_a_reset_that_failed_while_it_acted_still_needs_a_human(tmp_path: Path) -> None:
    """The driver may have done half of it, so nothing is claimed and the cordon stays."""
    context = fake_context(tmp_path)
    change(context, dead=[], unresettable=["s1"])
    run_dir, code = start_reset(context)
    assert code is ExitCode.NEEDS_HUMAN
    assert "nothing was done" not in why(run_dir)
    assert set(context.world.read()["cordons"]) == {"s1"}


def start_reset(context: FakeContext, playbook: object = RESET) -> tuple[Path, ExitCode]:
    from brctl.engine.runs.plan import prepare
    from brctl.engine.runs.remediate import create_run

    prepared = asyncio.run(prepare(context, playbook, None, {"nodes": "s1"}))  # type: ignore[arg-type]  # a playbook
    run_dir = create_run(context, prepared, AGREED)
    return run_dir, carry(context, run_dir)


def test_on_failure_of_a_clean_refusal_is_as_declared(tmp_path: Path) -> None:
    """As shipped it escalates: the nodes stay out of service, whatever was or was not done."""
    assert ESCALATES in SHIPPED_RESET.text
    context = fake_context(tmp_path)
    change(context, dead=[], held={"s1": 4711})
    run_dir, code = start_reset(context, SHIPPED_RESET)
    assert code is ExitCode.NEEDS_HUMAN
    assert "nothing was done" in why(run_dir)
    assert set(context.world.read()["cordons"]) == {"s1"}


def test_a_verification_that_cannot_be_written_out_fails_its_step(tmp_path: Path) -> None:
    """The file and the line are in the sentence, and the step is undone like any failed one."""
    text = (shipped_dir("playbooks") / "cordon.yaml").read_bytes()
    text += (
        b"    verify: {uses: check.run, with: {nodes: $(inputs.nodes), level: $(1 < job.name)}}\n"
    )
    context = fake_context(tmp_path)
    from brctl.engine.runs.plan import prepare
    from brctl.engine.runs.remediate import create_run

    playbook = read_playbook(text, "cordon.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, {"nodes": "n1"}))
    run_dir = create_run(context, prepared, ONCALL)
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    line = text.count(b"\n")
    assert f"playbook.yaml:{line}: `verify` of step cordon" in why(run_dir)
    assert context.world.read()["cordons"] == {}
