"""What every transport does, tried on every transport against real SSH servers."""

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from brctl.fanout.choose import TRANSPORTS, open_transport
from brctl.fanout.contract import Transport
from brctl.fanout.local import LocalTransport
from brctl.library.config import NodePods, SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from tests.contract.gateway_site import CAN_ISOLATE, GatewaySite, open_gateway_site
from tests.contract.transport_openers import SSH_OPENERS, open_named
from tests.contract.transport_sites import (
    DIE_WORD,
    SICK_KINDS,
    SSHD,
    Site,
    is_patient,
    open_site,
)
from tests.fakes.kube.cluster import kube_cluster, no_kubectl
from tests.fakes.slurm_cluster import missing, slurm_cluster
from tests.fakes.slurm_lab import idle
from tests.timeouts import TIMEOUT_S

NEEDS_SSHD = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs sshd and root")
SITES = [("asyncssh-server", False, []), ("sshd", True, [pytest.mark.ssh, NEEDS_SSHD])]
LIBRARIES = ("asyncssh", "openssh", "paramiko")
LIMIT_BYTES = 100_000


def command(script: str, stdin: bytes = b"", deadline_s: float = TIMEOUT_S) -> Command:
    return Command(("sh", "-c", script), stdin, deadline_s, LIMIT_BYTES)


COMMANDS = {
    "status": command("echo out; echo err >&2; exit 3"),
    "stdin": command("wc -c", b"x" * 300_000),
    "quoting": Command(("printf", "%s|", "a b", "$HOME", "`id`", ";true", "'", '"', "*")),
    "lines": command("seq 1 1000"),
    "binary": command("printf '\\000\\377\\033[31m\\r\\n'"),
    "late": command("echo begun; exec sleep 600", deadline_s=4.0),
    "flood": command("exec yes"),
    "missing": Command(("brctl-test-no-such-program",)),
}


class Ask:
    """Asks the good node one of the commands."""

    def __init__(self, transport: Transport, node: Node) -> None:
        self._transport = transport
        self._node = node

    async def __call__(self, name: str) -> CommandResult:
        return await self._transport.run(self._node, COMMANDS[name])


# What stands before asyncssh or the OpenSSH client needs no second server to try it on.
OVER_SSH = [
    pytest.param((name, real_sshd), id=f"{name}-{kind}", marks=marks)
    for name in SSH_OPENERS
    for kind, real_sshd, marks in SITES
    if name in LIBRARIES or not real_sshd
]


@pytest.fixture(params=OVER_SSH)
def transport_case(request: pytest.FixtureRequest) -> tuple[str, bool]:
    """Which transport, and whether against a real sshd."""
    found: tuple[str, bool] = request.param
    return found


@pytest.fixture
async def site(
    transport_case: tuple[str, bool], tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Site]:
    patient = is_patient(request)
    async with open_site(tmp_path, real_sshd=transport_case[1], patient=patient) as opened:
        yield opened


@pytest.fixture
async def transport(transport_case: tuple[str, bool], site: Site) -> AsyncIterator[Transport]:
    async with open_named(transport_case[0], site) as opened:
        yield opened


@asynccontextmanager
async def ask_over_ssh(folder: Path, transport_name: str, *, real_sshd: bool) -> AsyncIterator[Ask]:
    async with (
        open_site(folder, real_sshd=real_sshd) as site,
        open_named(transport_name, site) as opened,
    ):
        yield Ask(opened, site.good)


@asynccontextmanager
async def ask_local() -> AsyncIterator[Ask]:
    transport = LocalTransport()
    yield Ask(transport, Node("here", "localhost"))
    await transport.close()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A real Slurm of one node for as long as this module runs."""
    absent = missing()
    if absent:
        pytest.skip(f"not installed: {absent}")
    with slurm_cluster(tmp_path_factory.mktemp("slurm"), ["here"]):
        yield


@pytest.fixture(scope="module")
def behind_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewaySite]:
    """A node that only its gateway can reach."""
    if not CAN_ISOLATE:
        pytest.skip("needs root, ssh, sshd and iproute2")
    with open_gateway_site(tmp_path_factory.mktemp("tree"), 1) as opened:
        yield opened


@asynccontextmanager
async def ask_tree(site: GatewaySite) -> AsyncIterator[Ask]:
    transport = open_transport(site.ssh, site.nodes)
    yield Ask(transport, site.leaves[0].node)
    await transport.close()


@asynccontextmanager
async def ask_srun() -> AsyncIterator[Ask]:
    await idle("here")  # A job of the test before may still be completing there.
    transport = open_transport(SshSettings(transport="srun"))
    yield Ask(transport, Node("here", "localhost"))
    await transport.close()


@pytest.fixture(scope="module")
def node_pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A stand-in for a cluster whose node is entered through a DaemonSet's pod."""
    if no_kubectl():
        pytest.skip("not installed: kubectl")
    with kube_cluster(tmp_path_factory.mktemp("kube"), ["here"]) as cluster:
        cluster.add_daemonset("agent")
        yield


@asynccontextmanager
async def ask_kubectl() -> AsyncIterator[Ask]:
    pods = NodePods(daemonset="agent")
    ssh = SshSettings(transport="kubectl", node_pods=pods, connect_timeout_s=TIMEOUT_S)
    transport = open_transport(ssh)
    yield Ask(transport, Node("here", "localhost"))
    await transport.close()


# One site of the module for all of them, so one worker.
_SHARES_SLURM = pytest.mark.xdist_group("transports: srun")
_SHARES_KUBECTL = pytest.mark.xdist_group("transports: kubectl")
_SHARES_GATEWAY = pytest.mark.xdist_group("transports: tree")
TRANSPORT_CASES = [
    *OVER_SSH,
    pytest.param(("local", False), id="local"),
    pytest.param(("srun", False), id="srun", marks=[pytest.mark.slurm, _SHARES_SLURM]),
    pytest.param(("kubectl", False), id="kubectl", marks=_SHARES_KUBECTL),
    pytest.param(("tree", False), id="tree", marks=[pytest.mark.netns, _SHARES_GATEWAY]),
]


@pytest.fixture(params=TRANSPORT_CASES)
async def answer_to(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ask]:
    name, real_sshd = request.param
    if name == "local":
        opened = ask_local()
    elif name == "srun":
        request.getfixturevalue("slurm")
        opened = ask_srun()
    elif name == "kubectl":
        request.getfixturevalue("node_pods")
        opened = ask_kubectl()
    elif name == "tree":
        opened = ask_tree(request.getfixturevalue("behind_gateway"))
    else:
        opened = ask_over_ssh(tmp_path, name, real_sshd=real_sshd)
    async with opened as ask:
        yield ask


def test_every_transport_is_held_to_the_contract() -> None:
    """A transport that can be configured, or that stands in for one, is tried below."""
    tried = {
        str(case.id).removesuffix("-sshd").removesuffix("-asyncssh-server")
        for case in TRANSPORT_CASES
    }
    assert tried >= set(TRANSPORTS)
    assert tried - set(TRANSPORTS) == {"auto-exact", "spread", "tree"}


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
    assert 4.0 <= answer.seconds < TIMEOUT_S  # the command sleeps for longer


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
    patient = dataclasses.replace(COMMANDS["status"], deadline_s=600.0)
    answer = await transport.run(getattr(site, kind), patient)
    assert (answer.outcome, answer.exit_status) == (SICK_KINDS[kind], None)
    assert answer.detail
    assert answer.seconds < TIMEOUT_S  # the command could take longer


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
