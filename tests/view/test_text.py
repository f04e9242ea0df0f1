"""Text from nodes is harmless on a terminal: no escape, no direction change, no markup."""

from hypothesis import given
from hypothesis import strategies as st

from brctl.view.text import columns, printable


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    shown = printable(text)
    assert all(char == " " or (char.isprintable() or ord(char) > 159) for char in shown)
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert len(shown) <= 400


def test_markup_is_plain_text() -> None:
    assert printable("[red]boom[/red]") == "[red]boom[/red]"


def test_direction_overrides_are_shown_as_escapes() -> None:
    assert printable("a\u202eb") == "a\\u202eb"


def test_columns_align_and_never_end_in_blanks() -> None:
    assert columns([["a", "bbb"], ["aaaa", "b"]]) == "a     bbb\naaaa  b"
