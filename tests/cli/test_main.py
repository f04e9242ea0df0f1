"""One error for one mistake, on stderr or as a document, with the exit code of the table."""

import json

import pytest

from brctl.cli.invocation import read_common
from brctl.cli.main import run
from brctl.model.errors import UsageError


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["swep"], 64, "did you mean 'sweep'?"),
        (["addbr", "br0"], 64, "bridge-utils"),
        (["show"], 64, "bridge-utils"),
        (["sweep", "--levl", "1"], 64, "--levl"),
        (["sweep", "--level", "9"], 64, "--level"),
        (["help", "exit-cods"], 64, "did you mean 'exit-codes'?"),
        (["check", "explain", "gpu.eec"], 64, "did you mean 'gpu.ecc'?"),
        (["check"], 64, "Missing command"),
        (["ls", "-o", "jsn"], 64, "did you mean 'json'?"),
        (["ls", "-f", "0"], 64, "at least 1"),
        (["ls", "--timeout", "soon"], 64, "not a duration"),
        (["ls", "-w"], 64, "needs a value"),
        (["ls"], 78, "no configuration found"),
    ],
)
def test_a_mistake_is_one_error_with_its_code(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("error:") == 1
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_an_error_is_a_document_when_asked_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ls", "--json"]) == 78
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["exit_code"]) == ("Error", 78)
    assert document["error"]["class"] == "ConfigError"


def test_bare_help_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "sweep" in capsys.readouterr().out


def test_common_flags_are_read_before_and_after_the_verb() -> None:
    """People press Up and add a flag at the end."""
    invocation, rest = read_common(["cordon", "n1", "-m", "-q is text", "-o", "json"])
    assert rest == ["cordon", "n1", "-m", "-q is text"]
    assert (invocation.output, invocation.quiet) == ("json", False)


def test_everything_after_two_dashes_belongs_to_the_command() -> None:
    invocation, rest = read_common(["-w", "n[1-2]", "--", "ls", "-o", "json"])
    assert (invocation.nodes, invocation.output) == ("n[1-2]", "table")
    assert rest == ["--", "ls", "-o", "json"]


def test_a_command_may_give_a_common_flag_its_own_meaning() -> None:
    invocation, rest = read_common(["up", "--nodes", "8"], keep=("--nodes",))
    assert (invocation.nodes, rest) == (None, ["up", "--nodes", "8"])


def test_a_flag_without_its_value_is_refused() -> None:
    with pytest.raises(UsageError, match="--context needs a value"):
        read_common(["--context"])
