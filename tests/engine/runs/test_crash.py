"""A run killed with SIGKILL at any journal line ends, once resumed, as if nothing had happened."""

import asyncio
import os
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest, frozen_playbook, save_request
from brctl.journal.store import read_journal
from brctl.library.playbooks import load_playbook, read_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.runs.event import EventType
from brctl.playbook.run_record import replay
from brctl.playbook.steps import StepState
from tests.fakes import run_fake_world
from tests.fakes.run_context import example_verdict, fake_context

REQUEST = RunRequest(by="oncall")


def new_run(folder: Path) -> Path:
    context = fake_context(folder)
    playbook = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
    prepared = asyncio.run(prepare(context, playbook, example_verdict()))
    return create_run(context, prepared, REQUEST)


def run_process(run_dir: Path, **environ: str) -> int:
    """The run in a real process; forked, because importing brctl a hundred times takes minutes."""
    pid = os.fork()
    if pid == 0:
        log = os.open(run_dir / "stdout" / "run.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ |= environ
        os._exit(run_fake_world.main(run_dir))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert "Traceback" not in (run_dir / "stdout" / "run.log").read_text()
    return code


def end_state(folder: Path) -> dict[str, object]:
    """The world without what depends on how long it took."""
    data = fake_context(folder).world.read()
    for key in ("seconds", "step"):
        del data[key]
    for table in ("cordons", "reservations"):
        data[table] = {node: row["owner"] for node, row in data[table].items()}
    return data


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], int]:
    """The end state and the number of journal lines of a run nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    run_dir = new_run(folder)
    assert run_process(run_dir) == 0
    return end_state(folder), len(read_journal(run_dir).events)


def test_an_undisturbed_run_swaps_the_node_and_restarts(
    undisturbed: tuple[dict[str, object], int],
) -> None:
    """The broken node is cordoned and a standby carries its rank from a whole checkpoint on."""
    state, _ = undisturbed
    assert state["nodes"] == ["n1", "n2", "s1", "n4"]
    assert state["cordons"] == {"n3": "brctl:R-0001"}
    assert state["effects"] == [
        "cordon n3",
        "reserve s1",
        *(f"stop rank {rank}" for rank in (0, 1, 3)),
        "replace {'n3': 's1'}",
        "release s1",
        *(f"start rank {rank} from /ckpt/step-00000038" for rank in range(4)),
    ]


@pytest.mark.parametrize("moment", ["KILL_AFTER_LINE", "KILL_BEFORE_LINE"])
def test_killed_at_every_line_and_resumed_it_ends_the_same(
    moment: str, undisturbed: tuple[dict[str, object], int], tmp_path: Path
) -> None:
    """No line of the journal is a bad moment to die, and no step is applied twice."""
    expected, lines = undisturbed
    # Each line is met once: half of them is killed before, the others after they are written.
    first = int(moment == "KILL_BEFORE_LINE")
    for line in range(first, lines - (moment == "KILL_AFTER_LINE"), 2):
        folder = tmp_path / str(line)
        folder.mkdir()
        run_dir = new_run(folder)
        assert run_process(run_dir, **{moment: str(line)}) == -9, f"line {line}"
        assert run_process(run_dir) == 0, f"line {line}"
        assert end_state(folder) == expected, f"line {line}"
        recording = read_journal(run_dir)
        assert recording.ended
        assert recording.damage == ()
        record = replay(frozen_playbook(run_dir), recording.events)
        assert record.in_state(StepState.SKIPPED) == ("order",)
        assert record.in_state(StepState.DONE) == tuple(s for s in record.steps if s != "order")


def test_killed_right_after_any_change_it_does_not_change_it_again(
    undisturbed: tuple[dict[str, object], int], tmp_path: Path
) -> None:
    """The world has moved and the journal does not know: looking settles it, acting twice not."""
    expected, _ = undisturbed
    effects = expected["effects"]
    assert isinstance(effects, list)
    for count in range(1, len(effects) + 1):
        folder = tmp_path / str(count)
        folder.mkdir()
        run_dir = new_run(folder)
        assert run_process(run_dir, KILL_AFTER_EFFECT=str(count)) == -9, f"effect {count}"
        assert run_process(run_dir) == 0, f"effect {count}"
        assert end_state(folder) == expected, f"effect {count}"


def test_a_run_killed_again_and_again_still_arrives(
    undisturbed: tuple[dict[str, object], int], tmp_path: Path
) -> None:
    """Dying after every fifth line, time after time, only costs time."""
    expected, lines = undisturbed
    run_dir = new_run(tmp_path)
    for line in range(4, 6 * lines, 5):
        if run_process(run_dir, KILL_AFTER_LINE=str(line)) == 0:
            break
    assert end_state(tmp_path) == expected


def test_a_failed_run_killed_while_rolling_back_finishes_the_rollback(tmp_path: Path) -> None:
    """Undo survives a kill at every second line: what this run changed is taken back once."""
    for line in range(3, 45, 2):
        folder = tmp_path / str(line)
        folder.mkdir()
        run_dir = new_run(folder)
        # Both standbys are sick: reserving fails after the cordon, so the cordon is undone.
        with fake_context(folder).world.change() as data:
            data["sick"] = ["s1", "s2"]
        if run_process(run_dir, KILL_AFTER_LINE=str(line)) == 7:
            break
        assert run_process(run_dir) == 7, f"line {line}"
        state = end_state(folder)
        assert "n3" not in state["cordons"]  # type: ignore[operator]  # a mapping
        assert state["reservations"] == {}
        assert state["ranks"] == {str(rank): "first" for rank in range(4)}
        undone = [e for e in read_journal(run_dir).events if e.type is EventType.UNDO_RESULT]
        assert [e.fields["ok"] for e in undone if e.fields["step"] == "cordon"] == [True]
    else:
        pytest.fail("the run never ended by itself")


def test_resuming_what_has_ended_changes_nothing(tmp_path: Path) -> None:
    """A finished run that is resumed says it is finished."""
    run_dir = new_run(tmp_path)
    assert run_process(run_dir) == 0
    before = end_state(tmp_path)
    save_request(run_dir, REQUEST)
    assert run_process(run_dir) == 0
    assert end_state(tmp_path) == before


def new_hot_update(folder: Path) -> Path:
    """A hot update of a running job, from release r1 to r2."""
    context = fake_context(folder)
    with context.world.change() as data:
        data |= {"dead": [], "has_code": True}
    ledger = context.jobs.code_ledger("demo")
    ledger.record("r2", "digest-of-r2", urgent=True, why="faster", by="ann", at=context.clock.now())
    playbook = load_playbook(shipped_dir("playbooks") / "hot-update.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, {"job": "demo", "only": "due"}))
    return create_run(context, prepared, REQUEST)


def test_a_hot_update_killed_at_any_line_switches_the_code_once(tmp_path: Path) -> None:
    """The ledger says what the ranks run, whenever the controller dies."""
    ends = []
    for line in (None, *range(3, 19, 3)):
        folder = tmp_path / str(line)
        folder.mkdir()
        run_dir = new_hot_update(folder)
        if line is not None:
            assert run_process(run_dir, KILL_AFTER_LINE=str(line)) == -9, f"line {line}"
        assert run_process(run_dir) == 0, f"line {line}"
        ledger = (folder / "state" / "code" / "fake" / "demo" / "events.ndjson").read_text()
        kinds = [row.split('"')[3] for row in ledger.splitlines()]
        ends.append((end_state(folder), kinds))
    assert ends[0][1] == ["code.recorded", "code.applied", "code.started"]
    assert all(end == ends[0] for end in ends)


ROLLING = b"""\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: rolling, title: Mark nodes and look at them, risk: low}
inputs: {nodes: {type: nodeset, required: true}}
for_each: {node: $(inputs.nodes), batch: 2}
approval: {gate_before: checks, policy: [{need: one}]}
steps:
  - id: mark
    uses: node.label
    with: {nodes: $(node), set: {seen: $(run.id)}}
    safety: reversible
    undo: auto
  - id: checks
    uses: check.run
    with: {nodes: $(node)}
    safety: disruptive
  - id: tell
    uses: node.label
    with: {nodes: $(steps.checks.out.passed), set: {passed: $(run.id)}}
    safety: reversible
    undo: auto
"""


def new_rolling(folder: Path) -> Path:
    """Three nodes, two side by side and then the third."""
    context = fake_context(folder)
    with context.world.change() as data:
        data["dead"] = []
    playbook = read_playbook(ROLLING, "rolling.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, {"nodes": "n[1-2],s1"}))
    return create_run(context, prepared, RunRequest("cron", yes=True))


def rolled(run_dir: Path) -> tuple[dict[str, object], dict[str, str]]:
    """The world, whatever the order in which two nodes had their turn, and what became of each."""
    state = end_state(run_dir.parents[2])
    effects = state["effects"]
    assert isinstance(effects, list)
    record = replay(frozen_playbook(run_dir), read_journal(run_dir).events)
    return (
        state | {"effects": sorted(effects)},
        {node: str(node_run.result or "") for node, node_run in record.node_runs.items()},
    )


@pytest.mark.parametrize("moment", ["KILL_AFTER_LINE", "KILL_BEFORE_LINE"])
def test_a_run_over_nodes_killed_at_any_line_does_each_node_once(
    moment: str, tmp_path: Path
) -> None:
    """Two nodes in flight: the journal says which of them was where, whenever the process dies."""
    whole = tmp_path / "whole"
    whole.mkdir()
    run_dir = new_rolling(whole)
    assert run_process(run_dir) == 0
    expected, lines = rolled(run_dir), len(read_journal(run_dir).events)
    assert expected[1] == {"n1": "ok", "n2": "ok", "s1": "ok"}
    assert expected[0]["effects"] == sorted(
        f"label {node} {key}=R-0001" for node in ("n1", "n2", "s1") for key in ("seen", "passed")
    )
    # After its last line nobody is left to be killed, and before its first nothing was begun.
    for line in range(int(moment == "KILL_BEFORE_LINE"), lines - (moment == "KILL_AFTER_LINE")):
        folder = tmp_path / str(line)
        folder.mkdir()
        run_dir = new_rolling(folder)
        assert run_process(run_dir, **{moment: str(line)}) == -9, f"line {line}"
        assert run_process(run_dir) == 0, f"line {line}"
        assert rolled(run_dir) == expected, f"line {line}"
        assert read_journal(run_dir).damage == ()


def test_a_run_over_nodes_killed_after_any_change_does_not_change_it_again(tmp_path: Path) -> None:
    """A label that is not in the journal yet is found in the world, on the node it belongs to."""
    for count in range(1, 7):
        folder = tmp_path / str(count)
        folder.mkdir()
        run_dir = new_rolling(folder)
        assert run_process(run_dir, KILL_AFTER_EFFECT=str(count)) == -9, f"effect {count}"
        assert run_process(run_dir) == 0, f"effect {count}"
        effects = rolled(run_dir)[0]["effects"]
        assert isinstance(effects, list)
        assert len(effects) == len(set(effects)) == 6, f"effect {count}"
