"""Recorded faults: a table of a site in place of drawn ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from brctl.model.errors import ConfigError, UsageError
from brctl.simulate.compare import Request, choose_policies
from brctl.simulate.recorded import RecordedFaults, load_recorded
from brctl.simulate.run import Task, run_seed
from brctl.simulate.shards import conditions_sha256
from brctl.simulate.symptoms import Cause
from tests.simulate.fleets import MEANS

HEAD = "at_hours,symptom,cause,nodes\n"
THREE = "# ours\n" + HEAD + "30,gpu-memory,machine,gpu17\n2.5,hang,,\n40,manual,,\n"


def recorded(folder: Path, text: str) -> RecordedFaults:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return load_recorded(path)


def test_faults_come_when_they_were_recorded_and_what_is_open_is_drawn(tmp_path: Path) -> None:
    """The node of the second line has the first slot; a hang's cause differs by seed."""
    found = recorded(tmp_path, THREE)
    trace = found.trace(MEANS, 7, 90.0)
    bad = next(f for f in trace.of_nodes if f.symptom == "gpu-memory")
    assert (bad.at_us, bad.cause, bad.nodes) == (30 * 3_600_000_000, Cause.MACHINE, (0,))
    assert [f.symptom for f in trace.of_job if f.cause is Cause.PERSON] == ["manual"]
    causes = {
        fault.cause
        for seed in range(40)
        for part in (found.trace(MEANS, seed, 90.0),)
        for fault in (*part.of_nodes, *part.of_job)
        if fault.symptom == "hang"
    }
    assert causes == {Cause.MACHINE, Cause.CODE}
    assert found.trace(MEANS, 7, 90.0) == trace


def test_every_policy_meets_the_record_and_its_end_is_that_of_the_run(tmp_path: Path) -> None:
    found = recorded(tmp_path, THREE)
    policies = choose_policies(["requeue,oracle"])
    runs = run_seed(Task(MEANS, policies, (7,), 90.0, recorded=found), 7)
    assert [run.stops for run in runs] == [3, 3]
    assert found.after(1.5) == 1
    (short,) = run_seed(Task(MEANS, policies[:1], (7,), 1.5, recorded=found), 7)
    assert short.stops == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not one fault"),
        (HEAD, "not one fault"),
        ("hours,symptom\n1,hang\n", ":1: the first line must be at_hours,symptom,cause,nodes"),
        (HEAD + "1,hangs,,\n", ":2: symptom 'hangs': did you mean 'hang'?"),
        (HEAD + "1,hang,machin,\n", ":2: cause 'machin': did you mean 'machine'?"),
        (HEAD + "3h,hang,,\n", ":2: at_hours '3h': hours since the start, without a unit"),
        (HEAD + "-1,hang,,\n", ":2: at_hours -1: 0 to 87,600 can be"),
        (HEAD + "nan,hang,,\n", ":2: at_hours nan: 0 to 87,600 can be"),
        (HEAD + "1,hang\n", ":2: 2 columns; 4 are wanted"),
        (HEAD + '1,"hang,,\n', ":2: unexpected end of data"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        recorded(tmp_path, text)
    assert why in str(refused.value)


def test_what_is_no_text_or_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="no text in UTF-8 at byte 0"):
        load_recorded(tmp_path / "bytes")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recorded(tmp_path / "absent")


def test_more_nodes_than_the_fleet_has_are_refused_and_another_record_is_another_digest(
    tmp_path: Path,
) -> None:
    found = recorded(tmp_path, HEAD + "1,gpu-memory,machine,a b c\n")
    small = replace(MEANS, nodes=2)
    with pytest.raises(UsageError, match="names 3 nodes, paper-means has 2"):
        Request(small, choose_policies(["oracle"]), 7, 1, recorded=found)
    drawn = Request(MEANS, choose_policies(["oracle"]), 7, 1)
    assert conditions_sha256(replace(drawn, recorded=found)) != conditions_sha256(drawn)
