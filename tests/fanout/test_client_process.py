"""When a command that another program starts for us has begun."""

from brctl.fanout.client_process import ClientProcess


async def test_stdout_that_overtakes_the_commands_first_words_says_that_it_began() -> None:
    """Two streams come in any order; what the client says itself comes on stderr."""
    client = ClientProcess(b"mark", 1 << 20)
    client.pipe_data_received(2, b"Warning: of the client\n")
    assert not client.begun.is_set()
    client.pipe_data_received(1, b"half an answer")
    assert client.begun.is_set()


async def test_the_mark_says_that_a_command_without_output_began() -> None:
    client = ClientProcess(b"mark", 1 << 20)
    client.pipe_data_received(2, b"ma")
    client.pipe_data_received(2, b"rk\n")
    assert client.begun.is_set()
