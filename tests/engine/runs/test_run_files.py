"""The files of a run are read as what they are; a strange one is one error, never a traceback."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.engine.runs.run_files import (
    APPROVALS,
    INPUTS,
    REQUEST,
    RESULT,
    ApprovalAnswer,
    RunInputs,
    RunRequest,
    add_answer,
    load_answers,
    load_inputs,
    load_request,
    load_result,
    save_inputs,
    save_request,
    save_result,
)
from brctl.model.errors import ConfigError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import NodeResult, PastRun, RunState
from brctl.playbook.overrides import Override
from brctl.playbook.run_record import RunRecord, apply_event

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
PAST = PastRun(
    run="R-0001", playbook="cordon", nodes=("n1",), taken=("n1",), result=RunState.PARTIAL,
    exit_code=1, seconds=1.5, ended_at=NOON, steps={"cordon@n1": "done"},
    node_runs={"n1": {"result": "ok", "why": None}},
)  # fmt: skip


def write_all(folder: Path) -> None:
    override = Override("blast_radius", "ann", "rack on fire", NOON)
    save_request(folder, RunRequest("ann", typed="swap 1", forward=True, override=override))
    save_inputs(folder, RunInputs({"nodes": ["n1"]}, {"id": "V-1"}, "V-1", {"name": "demo"}))
    save_result(folder, PAST)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """Moments, tuples and the node runs (`lanes` on disk) come back as they were."""
    write_all(tmp_path)
    request = load_request(tmp_path)
    assert (request.typed, request.forward) == ("swap 1", True)
    assert request.override == Override("blast_radius", "ann", "rack on fire", NOON)
    assert load_inputs(tmp_path).inputs == {"nodes": ["n1"]}
    assert load_result(tmp_path) == PAST
    assert json.loads((tmp_path / RESULT).read_text())["lanes"]["n1"]["result"] == "ok"


@pytest.mark.parametrize("name", [REQUEST, INPUTS, RESULT])
def test_a_key_of_a_newer_brctl_is_passed_over(name: str, tmp_path: Path) -> None:
    """A run that a newer brctl left can be looked at."""
    write_all(tmp_path)
    path = tmp_path / name
    path.write_text(json.dumps({**json.loads(path.read_text()), "of_tomorrow": {"a": [1]}}))
    assert load_request(tmp_path).by == "ann"
    assert load_inputs(tmp_path).verdict_id == "V-1"
    assert load_result(tmp_path) == PAST


@pytest.mark.parametrize("text", ["", '{"by": "a', "[]", '{"by": 3}', '{"nothing": 1}', "\xff"])
@pytest.mark.parametrize("name", [REQUEST, INPUTS, RESULT])
def test_a_torn_or_strange_file_is_an_error_that_names_it(
    name: str, text: str, tmp_path: Path
) -> None:
    """Half a line, another shape, another type of a value."""
    write_all(tmp_path)
    (tmp_path / name).write_text(text, encoding="latin-1")
    read = {REQUEST: load_request, INPUTS: load_inputs, RESULT: load_result}[name]
    with pytest.raises(ConfigError, match=f"{name}: cannot be read"):
        read(tmp_path)


def test_a_torn_answer_is_no_answer(tmp_path: Path) -> None:
    """The whole lines around it count."""
    add_answer(tmp_path, ApprovalAnswer("ann", NOON, "d1", yes=True))
    with (tmp_path / APPROVALS).open("a") as stream:
        stream.write('{"by": "bob", "at": "2026-07-0\n{"by": "eve", "yes": "certainly"}\n')
    add_answer(tmp_path, ApprovalAnswer("kim", NOON, "d1", yes=False))
    assert [(a.by, a.yes) for a in load_answers(tmp_path)] == [("ann", True), ("kim", False)]


def test_every_result_has_its_exit_code_and_what_is_no_result_is_unknown() -> None:
    """Nothing but `ok` is exit 0, and a run without an end is nobody's success."""
    codes = {state: state.exit_code for state in RunState}
    assert [state for state, code in codes.items() if code is ExitCode.OK] == [RunState.OK]
    unknown = {state for state, code in codes.items() if code is ExitCode.UNKNOWN}
    assert unknown == {
        RunState.STARTING, RunState.RUNNING, RunState.LOST, RunState.UNREADABLE,
    }  # fmt: skip


def test_a_result_that_only_a_newer_brctl_knows_is_shown_as_unreadable() -> None:
    """It is not taken for any other, and it ends no command in a traceback."""
    record = RunRecord(("a",))
    record.lay_out((("n1",),))
    ended: dict[str, Json] = {"node": "n1", "result": "paused_for_lunch", "why": "", "seconds": 1}
    apply_event(record, Event(0, EventType.NODE_ENDED, "R-0001", NOON, ended))
    end: dict[str, Json] = {"result": "paused_for_lunch", "exit_code": 42}
    apply_event(record, Event(1, EventType.END, "R-0001", NOON, end))
    assert record.node_runs["n1"].result is NodeResult.UNREADABLE
    assert record.state(alive=False) is RunState.UNREADABLE


def test_lost_starting_and_running_are_told_apart_in_one_place() -> None:
    """By whether a process owns the run, and whether its journal has begun."""
    record = RunRecord(("a",))
    assert record.state(alive=False) is RunState.STARTING
    assert record.state(alive=True) is RunState.RUNNING
    apply_event(record, Event(0, EventType.RUN_STARTED, "R-0001", NOON, {"by": "ann"}))
    assert record.state(alive=False) is RunState.LOST
