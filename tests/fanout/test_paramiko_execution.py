"""A channel of paramiko whose connection ends while it is closed: what was answered stands."""

from typing import cast

import paramiko
import pytest

from brctl.fanout.paramiko.execution import Execution
from brctl.model.command import Command, Outcome


class EndedChannel:
    """A channel whose peer has gone; it is its own client and transport."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def get_transport(self) -> "EndedChannel":
        return self

    def open_session(self, timeout: float) -> "EndedChannel":
        return self

    def exec_command(self, line: str) -> None:
        """The command has begun."""

    def close(self) -> None:
        raise self._failure


@pytest.mark.parametrize("failure", [EOFError(), OSError(32, "broken pipe")], ids=repr)
def test_an_answer_stands_though_the_connection_ends_while_it_is_closed(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that babbles is cut off by both sides at once; that was raised as EOFError."""
    over = (Outcome.OUTPUT_OVER_LIMIT, "more than 4 bytes")
    monkeypatch.setattr(Execution, "_until_ended", lambda *_: over)
    client = cast("paramiko.SSHClient", EndedChannel(failure))
    command = Command(("yes",), b"", 5.0, 4)
    execution = Execution(client, command, lambda piece, is_stderr: None, lambda: None)
    assert execution.follow(1.0) == over
