"""Input and output that pass on while a command runs, and what stands in where they cannot."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from brctl.engine.controller.remote_shell import shell_argv
from brctl.fanout import streaming
from brctl.fanout.choose import (
    TRANSPORTS,
    WITHOUT_STREAMS,
    open_transport,
    takes_input_whole,
)
from brctl.fanout.contract import Streaming, Streams, Transport
from brctl.fanout.local import LocalTransport
from brctl.fanout.streaming import run_streamed
from brctl.library.config import NodePods, SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UsageError
from brctl.model.inventory import Node
from tests.contract.transport_openers import open_named
from tests.contract.transport_sites import open_site
from tests.fakes.transport import FakeTransport
from tests.timeouts import TIMEOUT_S

NODE = Node("here", "localhost")
TALK = Command(("sh", "-c", "read a; echo $a; read b; echo $b >&2; exit 3"), deadline_s=TIMEOUT_S)


class Talk:
    """Sends a second line only once the first has come back."""

    def __init__(self) -> None:
        self.heard: list[tuple[bytes, bool]] = []
        self._came_back = asyncio.Event()

    async def stdin(self) -> AsyncIterator[bytes]:
        yield b"one\n"
        await self._came_back.wait()
        yield b"two\n"

    def on_output(self, data: bytes, is_stderr: bool) -> None:
        self.heard.append((data, is_stderr))
        self._came_back.set()


async def talk_over(transport: Transport, node: Node) -> tuple[Talk, CommandResult]:
    talk = Talk()
    answer = await run_streamed(transport, node, TALK, Streams(talk.stdin, talk.on_output))
    return talk, answer


def held_a_talk(talk: Talk, answer: CommandResult) -> bool:
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 3)
    assert (answer.stdout, answer.stderr) == (b"", b"")
    return talk.heard == [(b"one\n", False), (b"two\n", True)]


@pytest.mark.parametrize("name", ["auto", "openssh", "paramiko"])
async def test_a_command_over_ssh_is_heard_while_it_still_reads(name: str, tmp_path: Path) -> None:
    """Its second line is only sent once its first answer is here."""
    async with open_site(tmp_path, real_sshd=False) as site, open_named(name, site) as opened:
        assert held_a_talk(*await talk_over(opened, site.good))


async def test_a_command_here_is_heard_while_it_still_reads() -> None:
    """As over SSH."""
    transport = LocalTransport()
    assert held_a_talk(*await talk_over(transport, NODE))
    await transport.close()


async def test_a_command_that_does_not_read_ends_when_it_ends() -> None:
    """Input that never ends holds up nobody."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536

    command = Command(("sh", "-c", "exit 4"), deadline_s=TIMEOUT_S)
    answer = await run_streamed(LocalTransport(), NODE, command, Streams(endless))
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 4)


async def one_line() -> AsyncIterator[bytes]:
    yield b"one\n"


async def test_a_transport_without_streams_gets_all_input_and_gives_all_output() -> None:
    """What was said is told once the node is done, and is not in the result as well."""
    heard: list[tuple[bytes, bool]] = []
    fake = FakeTransport(
        lambda node, command: CommandResult(node.name, Outcome.ANSWERED, 0, command.stdin, b"", 0.0)
    )
    streams = Streams(one_line, lambda data, is_stderr: heard.append((data, is_stderr)))
    answer = await run_streamed(fake, NODE, Command(("cat",)), streams)
    assert (answer.stdout, heard) == (b"", [(b"one\n", False), (b"", True)])


async def test_input_without_an_end_is_no_answer_where_it_is_needed_whole() -> None:
    """The node was never asked, and the result says why."""

    async def silence() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    fake = FakeTransport()
    answer = await run_streamed(fake, NODE, Command(("cat",), deadline_s=0.01), Streams(silence))
    assert answer.outcome is Outcome.COMMAND_TIMED_OUT
    assert "its input did not end within 0.01 s" in answer.detail
    assert fake.commands == []


async def test_too_much_input_for_a_transport_without_streams_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be in memory once for each node."""
    monkeypatch.setattr(streaming, "WHOLE_LIMIT_BYTES", 3)
    with pytest.raises(UsageError, match="holds it whole"):
        await run_streamed(FakeTransport(), NODE, Command(("cat",)), Streams(one_line))


def test_a_command_ends_when_the_sshd_that_brought_it_is_gone() -> None:
    """Its parent is killed as a cut connection ends sshd's process; the pipe it holds closes."""
    parent = subprocess.Popen(
        ["sh", "-c", 'setsid "$@" & wait', "sshd", *shell_argv("echo begun; sleep 600")],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"begun\n"
    parent.kill()
    assert parent.stdout.read() == b""
    parent.wait()
    parent.stdout.close()


@pytest.mark.parametrize("name", sorted(TRANSPORTS))
async def test_every_transport_holds_and_which_take_other_input_whole_is_known(name: str) -> None:
    """Before one is asked, by the list alone."""
    ssh = SshSettings(transport=name, node_pods=NodePods(daemonset="brctl-node"))
    opened = open_transport(ssh)
    assert isinstance(opened, Streaming)
    assert takes_input_whole(ssh, [NODE]) is (name in WITHOUT_STREAMS)
    await opened.close()
    assert TRANSPORTS.keys() > WITHOUT_STREAMS


def test_a_gateway_takes_input_whole_for_the_nodes_behind_it() -> None:
    """Those reached directly have streams; what is held goes through it all the same."""
    ssh = SshSettings(transport="asyncssh", gateways="tree")
    assert takes_input_whole(ssh, [NODE, Node("behind", "10.0.0.1", via="gate")])
    assert not takes_input_whole(ssh, [NODE])
