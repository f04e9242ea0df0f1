"""Gathered output: forms, order, and the last block."""

from brctl.model.command import CommandResult, Outcome
from brctl.model.exit_codes import ExitCode
from brctl.view.gathered import gathered_page


def told(node: str, stdout: bytes, status: int = 0) -> CommandResult:
    return CommandResult(node, Outcome.ANSWERED, status, stdout, b"", 0.1)


def silent(node: str, outcome: Outcome) -> CommandResult:
    return CommandResult(node, outcome, None, b"", b"", 1.0, f"{node}: nothing")


def test_the_largest_group_comes_first() -> None:
    """Most nodes agree; who differs follows."""
    page = gathered_page([told("n3", b"b\n"), told("n1", b"a\n"), told("n2", b"a\n")], [])
    assert page.text.index("n[1-2] (2)") < page.text.index("n3 (1)")
    assert page.exit_code is ExitCode.OK


def test_a_difference_is_shown_against_the_majority() -> None:
    """Only the lines that differ, under the nodes that differ."""
    answers = [told(f"n{i}", b"x\ny\n") for i in (1, 2)] + [told("n3", b"x\nz\n")]
    text = gathered_page(answers, [], "diff").text
    assert "n3 (1)  differs:\n---------------\n@@" in text
    assert text.endswith(" x\n-y\n+z")


def test_lines_name_their_node() -> None:
    """One line per node and line, for grep."""
    text = gathered_page([told("n2", b"b\n"), told("n1", b"a\nc\n", 2)], [], "lines").text
    assert text == "n1: a\nn1: c\nn1: exit 2\nn2: b"


def test_the_silent_ones_are_the_last_block() -> None:
    """Reasons fold over nodes; an interruption is a reason too; silence is UNKNOWN."""
    answers = [
        told("n1", b""), silent("n2", Outcome.REFUSED), silent("n3", Outcome.REFUSED),
    ]  # fmt: skip
    page = gathered_page(answers, ["n4"])
    assert page.exit_code is ExitCode.UNKNOWN
    assert page.text.splitlines()[-3:] == [
        "no answer (3): n[2-4]",
        "  refused      n[2-3]  NODE: nothing",
        "  interrupted  n4      had not answered yet",
    ]


def test_nobody_answered_is_unknown() -> None:
    """An empty answer is never OK."""
    assert gathered_page([], ["n1"]).exit_code is ExitCode.UNKNOWN
    assert gathered_page([], []).exit_code is ExitCode.UNKNOWN
