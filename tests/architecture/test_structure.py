"""The numbers of tests/bench/structure.py count what they say."""

import ast
from pathlib import Path

import pytest

from tests.bench.structure import code_lines, duplicated_blocks, main, mentions_of_helpers

MODULE = """
import os
# a comment
def _once(): pass

def _twice(): _once()
class C:
    def _never(self): _twice(), _twice()
"""


def test_a_private_helper_is_counted_by_its_mentions() -> None:
    assert sorted(mentions_of_helpers(ast.parse(MODULE))) == [0, 1, 2]


def test_imports_comments_and_blank_lines_are_no_code() -> None:
    assert code_lines(MODULE)[0] == "def _once(): pass"
    assert len(code_lines(MODULE)) == 4


def test_a_run_of_equal_lines_is_one_block_of_its_length() -> None:
    run = [f"line {number}" for number in range(8)]
    assert list(duplicated_blocks([[*run, "a"], ["b", *run, "c", "d"]])) == [8]
    assert list(duplicated_blocks([run[:5], run[:5]])) == []


@pytest.mark.parametrize("arguments", [["--wide"], ["nowhere"], ["{empty}"]])
def test_what_is_no_checkout_is_one_line_of_error(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown flag, a folder that is not there, one without the code: usage, exit 2."""
    with pytest.raises(SystemExit) as ended:
        main([word.format(empty=tmp_path) for word in arguments])
    assert ended.value.code == 2
    assert "tests.bench.structure: error:" in capsys.readouterr().err.splitlines()[-1]


def test_its_help_says_what_a_dir_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "DIR" in capsys.readouterr().out
