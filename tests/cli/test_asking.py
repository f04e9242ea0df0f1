"""A question at a terminal takes its own answer only."""

import os
import pty
import sys

import pytest

from brctl.cli.asking import says_yes


def test_what_is_left_of_an_answer_answers_no_other_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A script sends `y` and a newline, a person's finger stays on the key."""
    keys, terminal = pty.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(keys, b"yy")
        assert says_yes("one?")
        os.write(keys, b"n")
        assert not says_yes("two?")
    os.close(keys)
