"""What commands on nodes read: every node from the beginning, nothing of it in memory twice."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from brctl.engine.controller.command_input import CommandInput, FileInput, PipeInput, hold
from brctl.model.errors import UsageError


async def read_all(stdin: CommandInput) -> bytes:
    return b"".join([piece async for piece in stdin.pieces()])


async def test_each_node_reads_a_file_from_where_it_stood(tmp_path: Path) -> None:
    """The descriptor does not move: a shell's `while read` goes on where it was."""
    (tmp_path / "names").write_bytes(b"n1\nn2\nn3\n")
    descriptor = os.open(tmp_path / "names", os.O_RDONLY)
    os.read(descriptor, 3)
    stdin = FileInput(descriptor)
    assert [await read_all(stdin), await read_all(stdin)] == [b"n2\nn3\n", b"n2\nn3\n"]
    assert os.read(descriptor, 3) == b"n2\n"
    os.close(descriptor)


async def test_a_node_that_comes_later_reads_a_pipe_from_its_beginning() -> None:
    """What the first node took is kept for the second."""
    end, write_end = os.pipe()
    os.write(write_end, b"one\n")
    stdin = PipeInput(end)
    first = stdin.pieces()
    assert await anext(first) == b"one\n"
    os.write(write_end, b"two\n")
    assert await anext(first) == b"two\n"
    os.close(write_end)
    assert [piece async for piece in first] == []
    assert await read_all(stdin) == b"one\ntwo\n"
    stdin.close()
    os.close(end)


async def test_a_pipe_that_gives_too_much_is_refused() -> None:
    """It is kept on disk, which one without an end would fill."""
    end, write_end = os.pipe()
    os.write(write_end, b"x" * 11)
    with (
        closing(PipeInput(end, limit_bytes=10)) as stdin,
        pytest.raises(UsageError, match="through a pipe"),
    ):
        await read_all(stdin)
    os.close(write_end)
    os.close(end)


async def test_a_pipe_that_stays_open_is_one_error_where_it_is_needed_whole() -> None:
    """No node is asked, and what to type is said."""
    end, write_end = os.pipe()
    with closing(PipeInput(end)) as stdin, pytest.raises(UsageError, match="did not end") as found:
        await hold(stdin, 0.01)
    assert "--no-stdin" in str(found.value.hint)
    os.close(write_end)
    os.close(end)
