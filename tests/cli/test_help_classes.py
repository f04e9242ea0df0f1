"""`brctl help classes` prints every class of the one table."""

import json

import pytest

from brctl.cli.main import run
from brctl.model.fault import FaultClass
from brctl.playbook.tree import branch_of


def test_every_class_is_printed_with_its_branch_and_first_move(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["help", "classes", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["classes"]
    assert [row["class"] for row in rows if row["words"]] == [row["class"] for row in rows]
    assert {row["class"]: row["branch"] for row in rows} == {
        fault.value: branch_of(fault).value for fault in FaultClass
    }
    assert run(["help", "classes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for row in rows:
        (line,) = [text for text in lines if text.split()[:1] == [row["class"]]]
        assert f"  {row['first_move']['do']}  " in line
        assert line.endswith(row["title"])
