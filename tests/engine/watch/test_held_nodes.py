"""A held look over a real process: what changed comes, and nothing stays behind."""

import asyncio
import json
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.watch import held_nodes
from brctl.engine.watch.held_nodes import HeldNode, HeldNodes
from brctl.fanout.contract import Streams
from brctl.fanout.local import LocalTransport
from brctl.library.checks import usable_checks
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from brctl.sweep.held_look import LOST_S, HeldLook, WholeLines, read_held_line
from tests.timeouts import TIMEOUT_S

CHECK = "host.kernel"


async def until(what: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not what():  # noqa: ASYNC110 - what is waited for is another process's output
            await asyncio.sleep(0.02)


def held_look(log: Path) -> tuple[HeldLook, Node, Command]:
    """One check, asked whenever the log has grown."""
    # A busy machine may take long for what takes a moment.
    checks = {CHECK: replace(usable_checks()[0][CHECK], deadline_s=TIMEOUT_S)}
    look = HeldLook(checks, {0.2: (CHECK,)})
    node = Node("n1", "127.0.0.1", python=sys.executable, labels={"kernel_log": str(log)})
    told = {CHECK: {"kernel_log": str(log), "deadline_s": TIMEOUT_S}}
    return look, node, look.command(node, told)


def test_a_line_in_the_kernel_log_comes_by_itself_and_the_program_ends_with_us(
    tmp_path: Path,
) -> None:
    log = tmp_path / "kmsg"
    log.write_text("")
    look, node, command = held_look(log)

    async def scenario() -> None:
        transport = LocalTransport()
        held = HeldNodes(transport, look.checks, 4, asyncio.get_running_loop().time)
        held.hold({"n1": (node, command)})
        one = held.nodes["n1"]
        await until(lambda: one.talking and CHECK in one.fresh)
        one.fresh.clear()
        with log.open("a") as stream:
            stream.write("6,1,1000,-;BUG: soft lockup - CPU#1 stuck for 22s!\n")
        await until(lambda: "soft lockup" in str(one.fresh.get(CHECK)))
        await held.close()
        await transport.close()

    asyncio.run(scenario())


def test_the_program_ends_with_its_input(tmp_path: Path) -> None:
    """A cable that is cut leaves nothing on the node: the end of the input is the end."""
    log = tmp_path / "kmsg"
    log.write_text("")
    look, node, command = held_look(log)

    async def scenario() -> CommandResult:
        spoke = asyncio.Event()
        lines = WholeLines()

        async def words() -> AsyncIterator[bytes]:
            yield command.stdin
            await spoke.wait()

        def take(piece: bytes, is_stderr: bool) -> None:
            if any(read_held_line(line, look.checks) for line in lines.take(piece)):
                spoke.set()

        async with asyncio.timeout(TIMEOUT_S):
            return await LocalTransport().stream(node, command, Streams(words, take))

    done = asyncio.run(scenario())
    assert (done.outcome, done.exit_status) == (Outcome.ANSWERED, 0)


def test_a_controller_that_says_nothing_more_is_taken_for_gone(tmp_path: Path) -> None:
    """Its input stays open, as behind a frozen controller or a dead link."""
    log = tmp_path / "kmsg"
    log.write_text("")
    _, node, command = held_look(log)
    short = replace(command, stdin=_with_lost_s(command.stdin, 0.5))

    async def scenario() -> CommandResult:
        async def words() -> AsyncIterator[bytes]:
            yield short.stdin
            await asyncio.Event().wait()

        async with asyncio.timeout(TIMEOUT_S):
            return await LocalTransport().stream(node, short, Streams(words, lambda *_: None))

    assert asyncio.run(scenario()).exit_status == 1


def _with_lost_s(stdin: bytes, seconds: float) -> bytes:
    """The same program, less patient."""
    head, _, rest = stdin.partition(b"\n")
    content = json.loads(zlib.decompress(rest[: int(head)]))
    content["lost_s"] = seconds
    packed = zlib.compress(json.dumps(content).encode())
    return b"%d\n%s%s" % (len(packed), packed, rest[int(head) :])


def test_a_line_longer_than_the_limit_is_left_out_and_the_next_one_is_read() -> None:
    lines = WholeLines(limit_bytes=8)
    assert lines.take(b"abc\ndefg") == [b"abc"]
    assert lines.take(b"hijklmnop") == []
    assert lines.take(b"qr\nnext\n") == [b"next"]


def test_what_is_no_line_of_the_program_is_nothing() -> None:
    checks = {CHECK: usable_checks()[0][CHECK]}
    for line in (
        b"", b"Welcome to n1", b"[]", b'{"type": 3}', b'{"type": "result"}', b'{"type":"beat"',
        b'{"type": "result", "check": "gpu.none", "look": 1}',
    ):  # fmt: skip
        assert read_held_line(line, checks) is None
    beat = b'{"type": "beat", "looks": {"x": 1, "2": -4, "10": 7}, "cpu_s": "1"}'
    odd = read_held_line(beat, checks)
    assert odd is not None
    assert (odd.looks, odd.cpu_s) == ({10.0: 7}, None)


class SilentTransport:
    """Takes every connection and never answers."""

    async def run(self, node: Node, command: Command) -> CommandResult:
        await asyncio.Event().wait()
        raise AssertionError

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        return await self.run(node, command)

    async def close(self) -> None:
        """Nothing is open."""


def test_a_node_that_waits_for_its_turn_is_not_silent() -> None:
    """1,000 nodes log in over a minute, and none of them was asked before its turn."""
    seconds = [0.0]

    async def scenario() -> None:
        held = HeldNodes(SilentTransport(), {}, 1, lambda: seconds[0])
        command = HeldLook({}, {}).command(Node("n1", "127.0.0.1"), {})
        held.hold({name: (Node(name, "127.0.0.1"), command) for name in ("n1", "n2")})
        await until(lambda: held.waiting())
        seconds[0] = 60.0
        assert held.waiting() == {"n2"}
        assert held.silent_s(30.0) == {"n1": 60.0}
        held.hold({"n2": (Node("n2", "127.0.0.1"), command)})
        await until(lambda: not held.waiting())
        seconds[0] = 100.0
        assert held.silent_s(30.0) == {"n2": 40.0}
        await held.close()

    asyncio.run(scenario())


def hold_one(transport: SilentTransport, seconds: list[float]) -> HeldNodes:
    """A connection to n1 that is held, by a clock that the test moves."""
    held = HeldNodes(transport, {}, 1, lambda: seconds[0])
    node = Node("n1", "127.0.0.1")
    held.hold({"n1": (node, HeldLook({}, {}).command(node, {}))})
    return held


class EndingTransport(SilentTransport):
    """Every connection ends at once, in the same way."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    async def run(self, node: Node, command: Command) -> CommandResult:
        return CommandResult(node.name, self._outcome, None, b"", b"", 0.0, "the reason")


@pytest.mark.parametrize(
    ("outcome", "silent"), [(Outcome.NOT_AVAILABLE, {}), (Outcome.UNREACHABLE, {"n1": 60.0})]
)
def test_a_node_that_nobody_may_ask_is_not_silent(
    outcome: Outcome, silent: dict[str, float]
) -> None:
    """Slurm lets us look only beside a job of ours; why, is told all the same."""
    seconds = [0.0]

    async def scenario() -> None:
        held = hold_one(EndingTransport(outcome), seconds)
        await until(lambda: held.nodes["n1"].reconnects)
        seconds[0] = 60.0
        assert held.silent_s(30.0) == silent
        assert held.reconnecting() == {"n1": "the reason"}
        await held.close()

    asyncio.run(scenario())


class DyingTransport(SilentTransport):
    """Each connection says one thing and then, while a minute passes, nothing more."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = seconds

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        assert streams.on_output
        streams.on_output(b'{"type": "hello"}\n', False)
        self._seconds[0] += LOST_S
        return await self.run(node, command)


def test_a_connection_that_has_no_heartbeat_any_more_is_taken_for_dead() -> None:
    """A cable that is cut ends none of the processes on either side of it."""
    seconds = [0.0]

    async def scenario() -> None:
        held = hold_one(DyingTransport(seconds), seconds)
        await until(lambda: held.nodes["n1"].reconnects)
        assert held.silent_s(30.0) == {"n1": LOST_S}
        assert held.reconnecting() == {"n1": "nothing came for 60 s: taken for dead"}
        await held.close()

    asyncio.run(scenario())


class LosingTransport(DyingTransport):
    """A connection that dies, and after it, in order, how each further one ends."""

    def __init__(self, seconds: list[float], *ends: Outcome) -> None:
        super().__init__(seconds)
        self._ends = list(ends)
        self._died = False

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        if not self._died:
            self._died = True
            return await super().stream(node, command, streams)
        if not self._ends:
            return await self.run(node, command)
        return CommandResult(node.name, self._ends.pop(0), None, b"", b"", 0.0, "the reason")


def test_what_a_node_said_before_nobody_could_ask_it_is_stale_until_it_speaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dead node behind kubectl: not askable says neither that it lives nor that it is silent."""
    monkeypatch.setattr(held_nodes, "FIRST_PAUSE_S", 0.001)
    seconds = [0.0]

    async def scenario() -> None:
        ends = (Outcome.NOT_AVAILABLE, Outcome.CONNECT_TIMED_OUT)
        held = hold_one(LosingTransport(seconds, *ends), seconds)
        one = held.nodes["n1"]
        await until(lambda: one.reconnects == 3)
        assert (held.stale(), held.silent_s(30.0)) == (frozenset({"n1"}), {})
        said = read_held_line(b'{"type": "hello"}', {})
        assert said is not None
        held._take(one, said)
        assert held.stale() == frozenset()
        await held.close()

    asyncio.run(scenario())


def test_no_heartbeat_makes_a_share_of_the_processor_that_is_no_number() -> None:
    """A hostile node says it took all of the processor in no time."""
    look = HeldLook({}, {})
    held = HeldNodes(LocalTransport(), {}, 1, lambda: 0.0)
    node = Node("n1", "127.0.0.1")
    one = HeldNode(node, look.command(node, {}), 0.0)
    for line in (b'{"type":"beat","cpu_s":1e11,"up_s":1e-320}', b'{"type":"beat","cpu_s":1}'):
        said = read_held_line(line, {})
        assert said is not None
        held._take(one, said)
    assert one.cpu_share is None
    for line in (b'{"type":"beat","cpu_s":1,"up_s":4}', b'{"type":"beat","cpu_s":3,"up_s":12}'):
        said = read_held_line(line, {})
        assert said is not None
        held._take(one, said)
    assert one.cpu_share == 0.25  # of the time between the two: the start is no part of it
