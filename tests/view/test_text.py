"""Text from nodes is harmless on a terminal: no escape, no direction change, no markup."""

import pytest
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


@pytest.mark.parametrize(
    "char",
    [
        "\u00ad",
        "\u061c",
        "\u200b",
        "\u200f",
        "\u202e",
        "\u2060",
        "\u2064",
        "\u2066",
        "\u206f",
        "\ufeff",
        "\ufff9",
        "\ufffb",
        "\U000e0001",
        "\U000e0041",
        "\U000e007f",
        "\ud800",
    ],
)
def test_what_nobody_sees_is_shown_as_an_escape(char: str) -> None:
    """A name with a hidden part looks like another node's."""
    assert printable(f"gpu{char}1") == f"gpu{char.encode('unicode_escape').decode()}1"


def test_letters_of_any_script_stay() -> None:
    assert printable("Größe 節点 узел عقدة") == "Größe 節点 узел عقدة"


def test_columns_align_and_never_end_in_blanks() -> None:
    assert columns([["a", "bbb"], ["aaaa", "b"]]) == "a     bbb\naaaa  b"
