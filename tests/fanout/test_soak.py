"""Many sweeps while nodes die and return: nothing leaks, and every change is told once.

    BRCTL_SOAK_ROUNDS=500 python -m pytest -s -n 0 tests/fanout/test_soak.py

Through one transport that lives as long as the test, and through the broker, where each sweep is a
client of its own and the broker is what lives. Memory is that of the process that lives on; with
the direct transport this includes the sixteen servers.
"""

import asyncio
import gc
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import asyncssh
import pytest

from brctl.engine.sweeps.history import SweepHistory
from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.contract import Transport
from brctl.fanout.processes.broker_place import LOCK_NAME
from brctl.fanout.processes.broker_transport import BrokerTransport
from brctl.library.config import SshSettings
from brctl.model.inventory import Node
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.sweep.stream import sweep
from tests.fakes.brokers import end_brokers
from tests.sweep.answers import HELLO, check, end, envelope, result
from tests.sweep.healths import START

ROUNDS = int(os.environ.get("BRCTL_SOAK_ROUNDS", "36"))
NODES = 16
GROWTH_MB = 8.0
"""From a quarter of the rounds to the last; 500 sweeps that leak a sweep's answers keep more."""

ANSWER = "".join(
    json.dumps(line) + "\n" for line in (HELLO, result("c", envelope(1)), end(1))
).encode()


class Machine:
    """One node that can lose power and come back on its port."""

    def __init__(self, key: asyncssh.SSHKey, authorized: Path) -> None:
        self._key = key
        self._authorized = authorized
        self._server: asyncssh.SSHAcceptor | None = None
        self._connections: list[asyncssh.SSHServerConnection] = []
        self.port = 0

    @property
    def alive(self) -> bool:
        return self._server is not None

    async def start(self) -> None:
        connections = self._connections

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                connections.append(conn)

        self._server = await asyncssh.listen(
            "127.0.0.1", self.port, server_factory=Server, server_host_keys=[self._key],
            authorized_client_keys=str(self._authorized), process_factory=_answer,
            reuse_address=True, encoding=None,
        )  # fmt: skip
        self.port = self._server.get_port()

    async def stop(self) -> None:
        if self._server:
            self._server.close()
            for connection in self._connections:
                connection.abort()
            waits = (connection.wait_closed() for connection in self._connections)
            await asyncio.gather(*waits, return_exceptions=True)
            await self._server.wait_closed()
            self._connections.clear()
            self._server = None


async def _answer(process: asyncssh.SSHServerProcess[bytes]) -> None:
    await process.stdin.read()
    process.stdout.write(ANSWER)
    process.exit(0)


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[tuple[SshSettings, list[Machine]]]:
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(str(tmp_path / "id"))
    (tmp_path / "authorized").write_bytes(user_key.export_public_key())
    machines = [Machine(host_key, tmp_path / "authorized") for _ in range(NODES)]
    for machine in machines:
        await machine.start()
    key = host_key.export_public_key().decode()
    known = "".join(f"[127.0.0.1]:{machine.port} {key}" for machine in machines)
    (tmp_path / "known").write_text(known)
    yield SshSettings("root", (tmp_path / "id",), tmp_path / "known"), machines
    for machine in machines:
        await machine.stop()


@dataclass(frozen=True)
class Level:
    """What the process that lives on holds, all machines being alive."""

    descriptors: int
    children: int
    resident_mb: float


def level_of(pid: int) -> Level:
    """Read from /proc; a thread's children are the process's."""
    own = Path(f"/proc/{pid}")
    children = sum(len(path.read_text().split()) for path in own.glob("task/*/children"))
    pages = int((own / "statm").read_text().split()[1])
    resident_mb = pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return Level(len(os.listdir(own / "fd")), children, resident_mb)


class Direct:
    """One transport for all sweeps, in this process."""

    def __init__(self, ssh: SshSettings, folder: Path) -> None:
        self._transport = AsyncsshTransport(ssh)
        self._ssh, self._folder = ssh, folder

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Transport]:
        yield self._transport

    def pid(self) -> int:
        return os.getpid()

    async def close(self) -> None:
        await self._transport.close()


class Brokered(Direct):
    """A client for each sweep, as `brctl sweep` is one; the broker stays."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Transport]:
        socket = self._folder / "run" / "broker.sock"
        transport = BrokerTransport(self._ssh, {}, socket, lambda: AsyncsshTransport(self._ssh))
        yield transport
        await transport.close()

    def pid(self) -> int:
        return int((self._folder / "run" / LOCK_NAME).read_text())

    async def close(self) -> None:
        end_brokers(self._folder / "run")


@pytest.mark.parametrize("soak_class", [Direct, Brokered])
async def test_nothing_leaks_and_every_transition_is_told_once(
    soak_class: type[Direct], fleet: tuple[SshSettings, list[Machine]], tmp_path: Path
) -> None:
    """Each power-off is one new problem, each return one recovery, and what is held stays level."""
    ssh, machines = fleet
    nodes = [Node(f"n{i}", "127.0.0.1", machine.port) for i, machine in enumerate(machines)]
    soak = soak_class(ssh, tmp_path)
    history = SweepHistory(tmp_path)
    failures = told_new = told_back = 0
    levels: list[Level] = []
    for round_ in range(ROUNDS):
        failures += await _weather(machines, round_)
        async with soak.open() as transport:
            swept = await _sweep(transport, nodes, round_)
        assert [n.health is Health.OK for n in swept.nodes] == [m.alive for m in machines]
        changes = history.record(swept, {}, timedelta(days=9999))
        told_new += len(changes.new) + sum(len(mass.nodes) for mass in changes.mass)
        told_back += len(changes.recovered)
        if all(machine.alive for machine in machines):
            gc.collect()
            levels.append(level_of(soak.pid()))
    await soak.close()
    assert failures > 3
    assert (told_new, told_back) == (failures, failures)
    first, last = levels[len(levels) // 4], levels[-1]
    title = f"{soak_class.__name__}: {ROUNDS} sweeps of {NODES} nodes, {failures} deaths"
    sys.stdout.write(f"\n{title}\n  {first}\n  {last}\n")
    held = [level.descriptors for level in levels]
    assert max(held) - min(held) <= 2
    assert first.children == last.children
    assert last.resident_mb - first.resident_mb < GROWTH_MB


async def _weather(machines: list[Machine], round_: int) -> int:
    """In every sixth round two machines lose power, three rounds later they are back."""
    if round_ % 6 == 1 and round_ < ROUNDS - 6:
        first = round_ // 6 * 2
        for machine in (machines[first % NODES], machines[(first + 1) % NODES]):
            await machine.stop()
        return 2
    if round_ % 6 == 4:
        for machine in machines:
            if not machine.alive:
                await machine.start()
    return 0


async def _sweep(transport: Transport, nodes: list[Node], round_: int) -> Sweep:
    checks = {"c": check("c")}
    judged: dict[str, NodeHealth] = {}
    async for report in sweep(transport, nodes, checks, limit=NODES):
        state = Health.OK if report.outcome == "answered" else Health.UNKNOWN
        judged[report.node] = NodeHealth(report.node, state, report, (), ())
    at = START + timedelta(hours=round_)  # a machine fails again after two days
    return Sweep(f"S-{round_:05d}", 1, ("c",), at, 0.1, tuple(judged[n.name] for n in nodes))
