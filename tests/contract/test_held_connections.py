"""Connections that are held open: both ways while the command runs, and nothing left behind.

Over the gateway tree the gateway's ssh is a script that runs the command here; nodes that are
machines of their own: test_gateway_tree. Over srun, with a real Slurm: tests/fanout/test_srun.
"""

import asyncio
import contextlib
import dataclasses
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from brctl.engine.watch.held_nodes import HeldNodes
from brctl.fanout.choose import TRANSPORTS, open_transport
from brctl.fanout.contract import HELD_STDERR_BYTES, Streams, Transport
from brctl.fanout.streaming import run_streamed
from brctl.library.checks import usable_checks
from brctl.library.config import NodePods, SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from brctl.sweep.held_look import HeldLook
from tests.contract.transport_openers import open_named
from tests.contract.transport_sites import DIE_WORD, Site, open_site
from tests.fakes.kube.cluster import KubeCluster, kube_cluster, no_kubectl
from tests.timeouts import TIMEOUT_S

SSH = """#!/bin/sh
echo $PPID > "${0%/*}/gateway.pid"
for address; do test "$address" = -- && break; shift; done
case "$2" in
10.9.0.66) exec cat > /dev/null ;;
*) exec setsid -w sh -c "$3" ;;
esac
"""
"""The gateway's ssh: one node never logs us in, every other one is this machine.

As on a node, the command is in no process group of the gateway: it ends with its input only, also
where the server kills the gateway's program.
"""

MUTE = Node("mute", "10.9.0.66", via="gw")
HERE = Node("n1", "10.9.0.1", via="gw")


class Held:
    """What passes over one held connection: an empty line, then what a test puts into `say`."""

    def __init__(self) -> None:
        self.say: asyncio.Queue[bytes] = asyncio.Queue()
        self.say.put_nowait(b"\n")
        self.heard: dict[bool, bytearray] = {False: bytearray(), True: bytearray()}
        self._came = asyncio.Event()

    async def stdin(self) -> AsyncIterator[bytes]:
        while piece := await self.say.get():
            yield piece

    def on_output(self, piece: bytes, is_stderr: bool) -> None:
        self.heard[is_stderr] += piece
        self._came.set()

    async def hears(self, text: bytes) -> None:
        """Wait until it came on stdout."""
        async with asyncio.timeout(TIMEOUT_S):
            while text not in self.heard[False]:
                self._came.clear()
                await self._came.wait()

    def start(
        self, transport: Transport, node: Node, script: str, limit_bytes: int = 1 << 20
    ) -> "asyncio.Task[CommandResult]":
        command = Command(("sh", "-c", script), b"", TIMEOUT_S, limit_bytes)
        streams = Streams(self.stdin, self.on_output, held=True)
        return asyncio.ensure_future(run_streamed(transport, node, command, streams))


@asynccontextmanager
async def _tree(site: Site) -> AsyncIterator[Transport]:
    gateway = dataclasses.replace(site.good, name="gw", python=sys.executable)
    ssh = dataclasses.replace(site.ssh, transport="asyncssh", gateways="tree")
    opened = open_transport(ssh, {node.name: node for node in (gateway, MUTE, HERE)})
    yield opened
    await opened.close()


@asynccontextmanager
async def _gateway_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(SSH)
    (programs / "ssh").chmod(0o755)
    async with open_site(tmp_path, real_sshd=False) as opened:
        # The server runs what it is asked for with our environment.
        monkeypatch.setenv("PATH", str(programs), prepend=":")
        yield opened


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    async with _gateway_site(tmp_path, monkeypatch) as opened:
        yield opened


@pytest.fixture
async def tree(site: Site) -> AsyncIterator[Transport]:
    async with _tree(site) as opened:
        yield opened


@dataclass
class Way:
    """A transport, and a node that a connection is held to.

    Attributes:
        dying: Its connection breaks while the command runs; None where a test breaks it.
    """

    transport: Transport
    node: Node
    dying: Node | None = None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """A stand-in for a cluster whose node is entered through a DaemonSet's pod."""
    if no_kubectl():
        pytest.skip("not installed: kubectl")
    with kube_cluster(tmp_path_factory.mktemp("kube"), ["here"]) as opened:
        opened.add_daemonset("agent")
        yield opened


def _without_ssh(name: str) -> Transport:
    pods = NodePods(daemonset="agent")
    ssh = SshSettings(transport=name, node_pods=pods, connect_timeout_s=TIMEOUT_S)
    return open_transport(ssh)


OVER_SSH = ("asyncssh", "openssh", "paramiko", "broker")
KUBECTL = pytest.param("kubectl", marks=pytest.mark.xdist_group("held: kubectl"))
WAYS = ["local", *OVER_SSH, "tree", KUBECTL]


@pytest.fixture
async def way(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Way]:
    """A transport by its name, opened for this test alone."""
    name: str = request.param
    if name == "kubectl":
        request.getfixturevalue("cluster")
    async with contextlib.AsyncExitStack() as stack:
        if name in ("local", "kubectl"):
            opened = Way(_without_ssh(name), Node("here", "localhost"))
            stack.push_async_callback(opened.transport.close)
        elif name == "tree":
            site = await stack.enter_async_context(_gateway_site(tmp_path, monkeypatch))
            opened = Way(await stack.enter_async_context(_tree(site)), HERE)
        else:
            site = await stack.enter_async_context(open_site(tmp_path, real_sshd=False))
            transport = await stack.enter_async_context(_open_ssh(name, site))
            opened = Way(transport, site.good, site.dying)
        yield opened


@asynccontextmanager
async def _open_ssh(name: str, site: Site) -> AsyncIterator[Transport]:
    """As `open_named`; what is held through a broker takes its own way, which is no broker's."""
    if name != "broker":
        async with open_named(name, site) as transport:
            yield transport
        return
    transport = open_transport(dataclasses.replace(site.ssh, transport=name))
    yield transport
    await transport.close()


def test_every_transport_is_held_to_this_contract() -> None:
    """What can be configured is tried here, or for Slurm where a Slurm is."""
    tried = {str(name.values[0]) if name is KUBECTL else str(name) for name in WAYS}
    assert tried | {"srun", "auto"} == {*TRANSPORTS, "tree"}


@pytest.mark.parametrize("way", WAYS, indirect=True)
async def test_input_and_output_pass_until_the_input_ends(way: Way) -> None:
    """Each line comes back before the next one is sent; the end of the input is the end."""
    script = "while read line; do echo got $line; done; echo bye; echo last >&2; exit 3"
    held = Held()
    running = held.start(way.transport, way.node, script)
    for word in (b"one", b"two", b"three"):
        held.say.put_nowait(word + b"\n")
        await held.hears(b"got " + word + b"\n")
    held.say.put_nowait(b"")
    answer = await running
    assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 3), answer
    assert (answer.stdout, answer.stderr) == (b"", b"")
    assert held.heard == {False: b"got\ngot one\ngot two\ngot three\nbye\n", True: b"last\n"}


PIECE_BYTES, TOO_MUCH_BYTES = 1 << 18, 32 << 20


@pytest.mark.parametrize("way", WAYS, indirect=True)
async def test_input_waits_for_a_node_that_does_not_read(way: Way, tmp_path: Path) -> None:
    """What the buffers on the way hold is taken, and no more until the node reads; it gets all."""
    offered, enough, held = 0, asyncio.Event(), Held()

    async def stdin() -> AsyncIterator[bytes]:
        nonlocal offered
        while offered < TOO_MUCH_BYTES and not enough.is_set():
            offered += PIECE_BYTES
            yield bytes(PIECE_BYTES)

    script = f"echo begun; while ! test -e {tmp_path}/reads; do sleep 0.05; done; exec wc -c"
    command = Command(("sh", "-c", script), b"", TIMEOUT_S, 1 << 20)
    streams = Streams(stdin, held.on_output, held=True)
    running = asyncio.ensure_future(run_streamed(way.transport, way.node, command, streams))
    await held.hears(b"begun")
    before = 0
    while offered != before:  # on a slow machine it may look still too early, which is no failure
        before = offered
        await asyncio.sleep(0.1)
    assert offered < TOO_MUCH_BYTES
    enough.set()
    (tmp_path / "reads").touch()
    assert (await running).exit_status == 0
    assert held.heard[False].split() == [b"begun", b"%d" % offered]


@pytest.mark.parametrize("way", WAYS, indirect=True)
async def test_what_is_left_ends_on_the_node(way: Way, tmp_path: Path) -> None:
    """Its input ends when nobody listens any more; no signal reaches it."""
    held = Held()
    script = f"echo begun; cat; echo ended > {tmp_path}/ended"
    running = held.start(way.transport, way.node, f"exec setsid -w sh -c '{script}'")
    await held.hears(b"begun")
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await _until((tmp_path / "ended").exists)


@pytest.mark.parametrize("what", ["late", "endless"])
@pytest.mark.parametrize("way", WAYS, indirect=True)
async def test_a_command_that_is_given_up_leaves_the_held_one(
    way: Way, what: str, tmp_path: Path
) -> None:
    """It ends alone: whoever is held over the same connection goes on talking."""
    waits = f"until test -e {tmp_path}/over; do sleep 0.1; done"
    script = waits if what == "late" else "exec yes"
    held = Held()
    running = held.start(way.transport, way.node, "while read line; do echo got $line; done")
    await held.hears(b"got\n")
    given_up = Command(("sh", "-c", script), b"", 2.0, 1000)
    assert (await way.transport.run(way.node, given_up)).outcome is not Outcome.ANSWERED
    (tmp_path / "over").touch()
    held.say.put_nowait(b"still\n")
    await held.hears(b"got still\n")
    held.say.put_nowait(b"")
    assert (await running).exit_status == 0


@pytest.mark.parametrize("way", OVER_SSH, indirect=True)
async def test_a_connection_that_breaks_is_told_as_that(way: Way) -> None:
    """With what was said until then; it is neither an answer nor waited for."""
    held = Held()
    assert way.dying
    answer = await held.start(way.transport, way.dying, DIE_WORD)
    assert (answer.outcome, answer.exit_status) == (Outcome.DIED, None), answer
    assert held.heard[False] == b"half an ans"


@pytest.mark.parametrize("way", [KUBECTL], indirect=True)
async def test_an_exec_that_is_cut_is_told_as_that(way: Way, cluster: KubeCluster) -> None:
    """As a restarted API server or a rolled DaemonSet does: it says nothing of the node."""
    held = Held()
    running = held.start(way.transport, way.node, "echo begun; cat")
    await held.hears(b"begun")
    cluster.server.cut_executions()
    answer = await running
    assert (answer.outcome, answer.exit_status) == (Outcome.NOT_AVAILABLE, None), answer
    assert "the connection was cut before the command ended" in answer.detail


async def test_large_input_arrives_whole_and_in_order(tree: Transport) -> None:
    """More than all pipes on the way hold, and more than the gateway keeps at once."""
    held = Held()
    running = held.start(tree, HERE, "cksum")
    data = bytes(range(256)) * 3000
    for piece in (data[:7], data[7:500_000], data[500_000:], b""):
        held.say.put_nowait(piece)
    answer = await running
    assert answer.exit_status == 0, answer
    here = await asyncio.create_subprocess_exec("cksum", stdin=-1, stdout=-1)
    assert bytes(held.heard[False]) == (await here.communicate(b"\n" + data))[0]


async def test_a_gateway_that_is_killed_leaves_no_program_on_a_node(
    tree: Transport, tmp_path: Path
) -> None:
    """SIGKILL: nothing of ours there can clean up, and the input of each ssh ends all the same."""
    held = Held()
    running = held.start(tree, HERE, f"echo begun; cat; echo ended > {tmp_path}/ended")
    await held.hears(b"begun")
    os.kill(int((tmp_path / "bin" / "gateway.pid").read_text()), signal.SIGKILL)
    answer = await running
    await _until((tmp_path / "ended").exists)
    assert answer.outcome is Outcome.UNREACHABLE
    assert answer.detail.startswith("gateway gw: ")


async def test_a_node_that_is_dead_holds_up_no_other_one(tree: Transport) -> None:
    """One waits for a login that never comes; its neighbour talks meanwhile."""
    mute, held = Held(), Held()
    waiting = mute.start(tree, MUTE, "cat")
    mute.say.put_nowait(b"first\n")
    running = held.start(tree, HERE, "cat")
    held.say.put_nowait(b"hello\n")
    await held.hears(b"hello")
    assert not waiting.done()
    held.say.put_nowait(b"")
    assert (await running).exit_status == 0
    waiting.cancel()


@pytest.mark.parametrize("way", WAYS, indirect=True)
async def test_output_is_bounded(way: Way) -> None:
    """By the command's own limit; nothing of it is kept."""
    held = Held()
    answer = await held.start(way.transport, way.node, "exec yes", 100_000)
    assert (answer.outcome, answer.stdout) == (Outcome.OUTPUT_OVER_LIMIT, b"")
    assert len(held.heard[False]) == 100_000


@pytest.mark.parametrize("way", ["tree", KUBECTL], indirect=True)
async def test_words_that_are_kept_to_the_end_are_few(way: Way) -> None:
    """Where others mix theirs into stderr, it is bounded by a small limit of its own."""
    held = Held()
    answer = await held.start(way.transport, way.node, "exec yes >&2", 1 << 30)
    assert answer.outcome is Outcome.OUTPUT_OVER_LIMIT
    assert len(held.heard[True]) <= HELD_STDERR_BYTES


async def test_held_connections_leave_room_for_commands(site: Site) -> None:
    """As many as the gateway runs at once are held, and a command is answered beside them."""
    one = dataclasses.replace(site, ssh=dataclasses.replace(site.ssh, fanout=1))
    async with _tree(one) as transport:
        held = Held()
        running = held.start(transport, HERE, "echo begun; cat")
        await held.hears(b"begun")
        answer = await transport.run(HERE, Command(("echo", "beside"), deadline_s=TIMEOUT_S))
        running.cancel()
    assert (answer.outcome, answer.stdout) == (Outcome.ANSWERED, b"beside\n")


@pytest.mark.parametrize("way", ["tree", KUBECTL], indirect=True)
async def test_a_watch_looks_through_what_others_stand_before(way: Way) -> None:
    """The program of `brctl watch`, its first answers and its heartbeat."""
    checks = {"host.kernel": usable_checks()[0]["host.kernel"]}
    look = HeldLook(checks, {0.2: (), 0.4: ("host.kernel",)})
    node = dataclasses.replace(way.node, python=sys.executable)
    nodes = HeldNodes(way.transport, checks, 4, asyncio.get_running_loop().time)
    nodes.hold({"n1": (node, look.command(node, {"host.kernel": {}}))})
    await _until(lambda: bool(nodes.nodes["n1"].fresh))
    assert nodes.nodes["n1"].talking
    assert nodes.reconnecting() == {}
    await nodes.close()


async def _until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not happened():  # noqa: ASYNC110 - what is waited for is done by another process
            await asyncio.sleep(0.02)
