"""One error for one mistake, on stderr or as a document, with the exit code of the table."""

import io
import json

import pytest

from brctl.cli.invocation import read_common
from brctl.cli.main import run
from brctl.cli.output import wants_colour
from brctl.cli.words import WORDS
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
        (["check"], 64, "Missing command; one of: new, "),
        (["play", "frobnicate"], 64, "No such command 'frobnicate'; known: list, "),
        (["play", "shwo"], 64, "Did you mean 'show'?"),
        (["play", "show", "R-1", "R-2"], 64, "brctl play show --help"),
        (["cordon", "n1", "n2", "-m", "x"], 64, "several nodes are one word"),
        (["sweep", "n1"], 64, "as in brctl sweep -w n7"),
        (["stacks", "dump", "n1"], 64, "as in brctl stacks dump -w n7"),
        (["help", "--out", "/nope/x"], 64, "--out /nope/x: cannot be written: No such file"),
        (["sweep", "--level", "two"], 64, "'two' is no whole number"),
        (["logs", "classify", ""], 64, "is a variable of the shell empty?"),
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


def test_help_of_a_command_is_found_where_topics_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "sweep"]) == 0
    assert "Usage: brctl sweep" in capsys.readouterr().out


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


def test_nodes_named_twice_add_up() -> None:
    """A second -w silently replaced the first."""
    invocation, _ = read_common(["ls", "-w", "n1", "-w", "n[3-4]", "-x", "n3", "-x", "n4"])
    assert (invocation.nodes, invocation.exclude) == ("n1,n[3-4]", "n3,n4")


def test_a_dash_reads_nodes_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n1 n2,  # the first two\n\nn[5-6]\n"))
    invocation, _ = read_common(["ls", "-w", "-", "-w", "n9"])
    assert invocation.nodes == "n1,n2,n[5-6],n9"


def test_an_empty_pipe_is_no_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """`list-of-bad-nodes | brctl cordon -w -` with nothing bad must not mean every node."""
    monkeypatch.setattr("sys.stdin", io.StringIO("# none\n"))
    with pytest.raises(UsageError, match="no node names on stdin"):
        read_common(["ls", "-w", "-"])


@pytest.mark.parametrize("word", WORDS)
def test_a_usage_line_says_each_word_once(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It was `brctl cordon cordon NODES`, which nobody can type."""
    assert run([word, "-h"] if word != "run" else [word, "--help"]) == 0
    usage = capsys.readouterr().out.splitlines()[0]
    assert usage.startswith(f"Usage: brctl {word} ")
    assert f"{word} {word}" not in usage


def test_colour_goes_into_a_pipe_when_the_environment_says_so() -> None:
    """The order of no-color.org and bixense.com/clicolors: flag, NO_COLOR, CLICOLOR_FORCE."""
    assert wants_colour("auto", {"CLICOLOR_FORCE": "1"}, tty=False)
    assert not wants_colour("auto", {"CLICOLOR_FORCE": "0"}, tty=False)
    assert not wants_colour("auto", {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, tty=False)
    assert not wants_colour("never", {"CLICOLOR_FORCE": "1"}, tty=True)


def test_names_fold_and_count_without_any_configuration(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `nodeset`: in a pipe, on a machine that has no inventory."""
    monkeypatch.setattr("sys.stdin", io.StringIO("n3\nn1\n"))
    assert run(["nodes", "fold", "n2", "-"]) == 0
    assert run(["nodes", "expand", "n[1-3]!n2", "-S", " "]) == 0
    assert run(["nodes", "count", "n[1-3]", "-x", "n1"]) == 0
    assert capsys.readouterr().out == "n[1-3]\nn1 n3\n2\n"
    assert run(["nodes", "count", "@standby"]) == 78
