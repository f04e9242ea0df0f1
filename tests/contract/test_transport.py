"""What every transport does, tried on every transport against real SSH servers."""

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Transport
from brctl.fanout.local import LocalTransport
from brctl.fanout.replay import RecordingTransport, ReplayTransport
from brctl.library.config import SshSettings
from brctl.model.answer import Answer, Command, Outcome
from brctl.model.inventory import Node
from tests.contract.transport_sites import DIE_WORD, SICK_KINDS, SSHD, Site, open_site
from tests.fakes.slurm_cluster import missing, slurm_cluster

NEEDS_SSHD = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs sshd and root")
SITES = [
    pytest.param(False, id="asyncssh-server"),
    pytest.param(True, id="sshd", marks=[pytest.mark.ssh, NEEDS_SSHD]),
]
SSH_TRANSPORTS = ["asyncssh", "openssh", "paramiko"]
LIMIT_BYTES = 100_000


def command(script: str, stdin: bytes = b"", deadline_s: float = 10.0) -> Command:
    return Command(("sh", "-c", script), stdin, deadline_s, LIMIT_BYTES)


COMMANDS = {
    "status": command("echo out; echo err >&2; exit 3"),
    "stdin": command("wc -c", b"x" * 300_000),
    "quoting": Command(("printf", "%s|", "a b", "$HOME", "`id`", ";true", "'", '"', "*")),
    "lines": command("seq 1 1000"),
    "binary": command("printf '\\000\\377\\033[31m\\r\\n'"),
    "late": command("echo begun; exec sleep 60", deadline_s=2.0),
    "flood": command("exec yes"),
    "missing": Command(("brctl-test-no-such-program",)),
}


class Ask:
    """Asks the good node one of the commands."""

    def __init__(self, transport: Transport, node: Node) -> None:
        self._transport = transport
        self._node = node

    async def __call__(self, name: str) -> Answer:
        return await self._transport.run(self._node, COMMANDS[name])


@pytest.fixture(params=SITES)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, real_sshd=request.param) as opened:
        yield opened


@pytest.fixture(params=SSH_TRANSPORTS)
async def transport(site: Site, request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    opened = open_transport(dataclasses.replace(site.ssh, transport=request.param))
    yield opened
    await opened.close()


@asynccontextmanager
async def ask_over_ssh(folder: Path, transport: str, *, real_sshd: bool) -> AsyncIterator[Ask]:
    async with open_site(folder, real_sshd=real_sshd) as site:
        opened = open_transport(dataclasses.replace(site.ssh, transport=transport))
        yield Ask(opened, site.good)
        await opened.close()


@asynccontextmanager
async def ask_local() -> AsyncIterator[Ask]:
    transport = LocalTransport()
    yield Ask(transport, Node("here", "localhost"))
    await transport.close()


class AskRecording(Ask):
    """Records the answer of this machine, and gives what the recording says."""

    def __init__(self, path: Path) -> None:
        super().__init__(LocalTransport(), Node("here", "localhost"))
        self._path = path

    async def __call__(self, name: str) -> Answer:
        recorder = RecordingTransport(self._transport, self._path)
        await recorder.run(self._node, COMMANDS[name])
        await recorder.close()
        return await ReplayTransport(self._path).run(self._node, COMMANDS[name])


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A real Slurm of one node for as long as this module runs."""
    absent = missing()
    if absent:
        pytest.skip(f"not installed: {absent}")
    with slurm_cluster(tmp_path_factory.mktemp("slurm"), ["here"]):
        yield


@asynccontextmanager
async def ask_srun() -> AsyncIterator[Ask]:
    transport = open_transport(SshSettings(transport="srun"))
    yield Ask(transport, Node("here", "localhost"))
    await transport.close()


WAYS = [
    *(
        pytest.param((name, real.values[0]), id=f"{name}-{real.id}", marks=real.marks)
        for name in SSH_TRANSPORTS
        for real in SITES
    ),
    pytest.param(("local", False), id="local"),
    pytest.param(("replay", False), id="replay"),
    pytest.param(("srun", False), id="srun", marks=pytest.mark.slurm),
]


@pytest.fixture(params=WAYS)
async def answer_to(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ask]:
    name, real_sshd = request.param
    if name == "local":
        way = ask_local()
    elif name == "srun":
        request.getfixturevalue("slurm")
        way = ask_srun()
    elif name == "replay":
        yield AskRecording(tmp_path / "recording")
        return
    else:
        way = ask_over_ssh(tmp_path, name, real_sshd=real_sshd)
    async with way as ask:
        yield ask


async def test_a_command_s_own_status_and_both_streams_come_back(answer_to: Ask) -> None:
    """A nonzero exit is an answer like any other."""
    answer = await answer_to("status")
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 3)
    assert (answer.stdout, answer.stderr) == (b"out\n", b"err\n")


async def test_stdin_arrives_whole(answer_to: Ask) -> None:
    """Programs travel through stdin, larger than any pipe's buffer."""
    assert (await answer_to("stdin")).stdout.split() == [b"300000"]


async def test_no_shell_ever_expands_an_argument(answer_to: Ask) -> None:
    """Arguments reach the program as they are, metacharacters included."""
    assert (await answer_to("quoting")).stdout == b"a b|$HOME|`id`|;true|'|\"|*|"


async def test_a_thousand_lines_come_back_in_order(answer_to: Ask) -> None:
    """Nothing is lost or reordered between channel and answer."""
    expected = "".join(f"{n}\n" for n in range(1, 1001)).encode()
    assert (await answer_to("lines")).stdout == expected


async def test_output_is_bytes_and_never_decoded(answer_to: Ask) -> None:
    """NUL, invalid UTF-8 and terminal escapes pass unchanged."""
    assert (await answer_to("binary")).stdout == b"\x00\xff\x1b[31m\r\n"


async def test_a_late_command_keeps_what_it_said(answer_to: Ask) -> None:
    """The command's deadline is its own outcome and partial output survives it."""
    answer = await answer_to("late")
    assert (answer.outcome, answer.exit_status) == (Outcome.COMMAND_TIMED_OUT, None)
    assert answer.stdout == b"begun\n"
    assert 2.0 <= answer.seconds < 8.0


async def test_endless_output_ends_at_its_limit(answer_to: Ask) -> None:
    """A node that babbles costs the limit and no more."""
    answer = await answer_to("flood")
    assert answer.outcome is Outcome.OUTPUT_OVER_LIMIT
    assert len(answer.stdout) == LIMIT_BYTES


async def test_a_program_that_is_not_there_is_exit_127(answer_to: Ask) -> None:
    """The node answered; what it answered is for the caller to judge."""
    answer = await answer_to("missing")
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 127)
    assert b"brctl-test-no-such-program" in answer.stderr


@pytest.mark.parametrize("kind", SICK_KINDS)
async def test_every_sick_node_ends_as_what_it_is(
    transport: Transport, site: Site, kind: str
) -> None:
    """Each failure has exactly one outcome, a sentence, no status and its own deadline."""
    answer = await transport.run(getattr(site, kind), COMMANDS["status"])
    assert (answer.outcome, answer.exit_status) == (SICK_KINDS[kind], None)
    assert answer.detail
    assert answer.seconds < 5.0


async def test_a_node_that_dies_while_answering_is_never_a_success(
    transport: Transport, site: Site
) -> None:
    """A connection that ends without a status is DIED, with what was said until then."""
    answer = await transport.run(site.dying, Command((DIE_WORD,)))
    assert (answer.outcome, answer.exit_status) == (Outcome.DIED, None)
    assert answer.stdout == b"half an ans"


async def test_a_node_that_came_back_answers_again(transport: Transport, site: Site) -> None:
    """A connection that died is replaced, not remembered."""
    await transport.run(site.dying, Command((DIE_WORD,)))
    answer = await transport.run(site.dying, COMMANDS["status"])
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 3)


async def test_cancelling_ends_the_command(transport: Transport, site: Site) -> None:
    """Ctrl-C passes through and leaves the transport usable."""
    running = asyncio.create_task(transport.run(site.good, COMMANDS["late"]))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await transport.run(site.good, COMMANDS["status"])).exit_status == 3


async def test_a_hostile_host_name_is_an_outcome(
    transport: Transport, site: Site, tmp_path: Path
) -> None:
    """Shell metacharacters and option look-alikes in an address run nothing on the controller."""
    trap = f"touch {tmp_path}/was-here"
    for address in (f"-oProxyCommand={trap}", f"x;{trap}", f"$({trap})"):
        node = dataclasses.replace(site.good, name="bad", address=address)
        answer = await transport.run(node, COMMANDS["status"])
        assert answer.outcome is Outcome.UNREACHABLE, answer
    assert "was-here" not in os.listdir(tmp_path)
