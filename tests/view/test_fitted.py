"""Nothing is broken within a name, nothing is left out, and columns keep room for words."""

from hypothesis import given
from hypothesis import strategies as st

from brctl.view.fitted import fitted
from brctl.view.text import columns

ROW = ("CRIT", "1", "n3", "gpu.devices", "gpu 7 (slot 0000:db:00.0) is lost: no driver talks to it")


@given(st.text(alphabet="ab, -n", max_size=300), st.integers(min_value=1, max_value=120))
def test_every_character_but_blanks_stays_in_its_place(text: str, width: int) -> None:
    assert "".join(fitted(text, width).split()) == "".join(text.split())


def test_a_line_of_blanks_is_a_line() -> None:
    assert fitted(" " * 200, 60).strip() == ""


@given(st.lists(st.sampled_from(["n[1-3,7]", "gpu-0412", "R-0012", "is", "lost"])))
def test_no_line_is_too_long_and_no_name_is_broken(words: list[str]) -> None:
    shown = fitted("  ".join(words), 60)
    assert all(len(line) <= 60 for line in shown.splitlines())
    assert shown.split() == words


def test_a_cell_goes_on_below_its_own_column() -> None:
    assert fitted(columns([ROW]), 60).splitlines() == [
        "CRIT  1  n3  gpu.devices  gpu 7 (slot 0000:db:00.0) is lost:",
        "                          no driver talks to it",
    ]


def test_no_column_is_a_letter_wide() -> None:
    """The free text of a row whose other columns fill the line begins below them."""
    row = ["x" * 50, "n[1-9]", "a sentence that has no room in what is left over of the line"]
    assert max(map(len, fitted(columns([row]), 60).splitlines())) <= 60
    assert len(fitted(columns([row]), 60).splitlines()) <= 4


def test_a_node_set_longer_than_a_line_ends_at_its_commas() -> None:
    names = "gpu[" + ",".join(f"{i:04d}" for i in range(0, 60, 2)) + "]"
    lines = fitted(f"no answer (30): {names}", 80).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert all(line.endswith(",") for line in lines[1:-1])


def test_a_command_stays_one_line_so_that_it_can_be_copied() -> None:
    command = "next: brctl dx -w 'gpu[0001-0004,0007-0009,0011]' --level 2 --beside-job --watch 30"
    assert fitted(command, 60) == command


def test_what_is_wide_only_because_of_another_row_takes_no_more_room() -> None:
    rows = [["n1", "ok"], ["gpu[" + ",".join(map(str, range(40))) + "]", "no answer"]]
    assert fitted(columns(rows), 60).splitlines()[0] == "n1  ok"
