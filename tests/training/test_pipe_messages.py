"""A message that stops in the middle is late, one whose writer is gone has ended."""

import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest

from brctl.training.pipe_messages import receive_message, send_message
from tests.timeouts import TIMEOUT_S

Pipe = tuple[Connection, Connection]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reader, writer = multiprocessing.Pipe(duplex=False)
    yield reader, writer
    reader.close()
    writer.close()


@pytest.mark.parametrize("message", [b"", b"x" * 5000])
def test_what_is_sent_is_received(pipe: Pipe, message: bytes) -> None:
    send_message(pipe[1], message)
    send_message(pipe[1], b"next")
    assert receive_message(pipe[0], TIMEOUT_S) == message
    assert receive_message(pipe[0], TIMEOUT_S) == b"next"


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0" * 6 + b"\1\0" + b"x" * 10])
def test_a_part_of_a_message_is_late_or_at_its_end(pipe: Pipe, sent: bytes) -> None:
    os.write(pipe[1].fileno(), sent)
    with pytest.raises(TimeoutError):
        receive_message(pipe[0], 0.01)
    os.write(pipe[1].fileno(), sent)
    pipe[1].close()
    with pytest.raises(EOFError):
        receive_message(pipe[0], TIMEOUT_S)
