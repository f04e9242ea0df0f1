"""Nodes the controller has no route to, asked by a gateway with its own keys: all sshd is real."""

import asyncio
import dataclasses
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Streams, Transport
from brctl.fanout.gateway.relay import GatewayRelay
from brctl.fanout.gather import gather
from brctl.fanout.streaming import run_streamed
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from brctl.sweep.stream import sweep
from tests.contract.gateway_site import CAN_ISOLATE, GatewaySite, Machine, open_gateway_site
from tests.own_processes import descendants
from tests.sweep.answers import check
from tests.timeouts import TIMEOUT_S

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(not CAN_ISOLATE, reason="needs root, ssh, sshd and iproute2"),
]
LEAVES = 3
STATUS = Command(("sh", "-c", "echo out; echo err >&2; exit 3"), deadline_s=TIMEOUT_S)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[GatewaySite]:
    with open_gateway_site(tmp_path, LEAVES) as opened:
        yield opened


@pytest.fixture
async def transport(site: GatewaySite) -> AsyncIterator[Transport]:
    opened = open_transport(site.ssh, site.nodes)
    yield opened
    for machine in (site.gateway, *site.leaves):
        machine.signal(signal.SIGCONT)
    await opened.close()


async def _ask_all(
    transport: Transport, site: GatewaySite, command: Command
) -> dict[str, CommandResult]:
    nodes = [leaf.node for leaf in site.leaves]
    answers = [a async for a in gather(transport, nodes, lambda _: command, limit=8)]
    assert Counter(a.node for a in answers) == Counter(node.name for node in nodes)
    return {answer.node: answer for answer in answers}


async def test_a_gateway_asks_what_the_controller_cannot_reach(
    transport: Transport, site: GatewaySite
) -> None:
    """Status and both streams are the node's own; without the gateway there is no way."""
    answers = await _ask_all(transport, site, STATUS)
    for answer in answers.values():
        assert (answer.outcome, answer.exit_status) == (Outcome.ANSWERED, 3), answer
        assert (answer.stdout, answer.stderr) == (b"out\n", b"err\n")
    direct = open_transport(dataclasses.replace(site.ssh, gateways="jump"))
    alone = await direct.run(dataclasses.replace(site.leaves[0].node, via=""), STATUS)
    await direct.close()
    assert alone.outcome is Outcome.UNREACHABLE


async def test_a_status_of_255_is_that_of_the_command(
    transport: Transport, site: GatewaySite
) -> None:
    """The gateway's ssh says 255 for its own failures; the rest of the contract: test_transport."""
    own = await transport.run(
        site.leaves[0].node, Command(("sh", "-c", "exit 255"), b"", TIMEOUT_S)
    )
    assert (own.outcome, own.exit_status) == (Outcome.ANSWERED, 255)


async def test_a_frozen_and_a_changed_node_are_told_apart(site: GatewaySite) -> None:
    """Each of them ends as what it is, at its own deadline, and the third one answers."""
    frozen, changed, _ = site.leaves
    frozen.signal(signal.SIGSTOP)
    _forget(site, changed)
    ssh = dataclasses.replace(site.ssh, connect_timeout_s=10.0, login_timeout_s=10.0)
    transport = open_transport(ssh, site.nodes)
    try:
        answers = await _ask_all(transport, site, STATUS)
    finally:
        frozen.signal(signal.SIGCONT)
        await transport.close()
    assert answers["leaf0"].outcome is Outcome.LOGIN_TIMED_OUT
    assert answers["leaf0"].seconds < TIMEOUT_S
    assert answers["leaf1"].outcome is Outcome.HOST_KEY_MISMATCH
    assert answers["leaf2"].exit_status == 3
    assert all("gateway gw" in answers[name].detail for name in ("leaf0", "leaf1"))


def _forget(site: GatewaySite, leaf: Machine) -> None:
    lines = site.known_hosts.read_text().splitlines(keepends=True)
    kept = [line for line in lines if f"[{leaf.node.address}]" not in line]
    site.known_hosts.write_text("".join(kept))


async def test_a_leaf_that_loses_power_mid_way_died(
    transport: Transport, site: GatewaySite
) -> None:
    """Never a success, and what it said is kept."""
    command = Command(("sh", "-c", "echo begun; exec sleep 600"), deadline_s=30)
    started = monotonic()
    running = asyncio.create_task(transport.run(site.leaves[0].node, command))
    await _sleeps(site.leaves[0])
    # For its word to travel: on a busy machine longer, as it was until the command had begun.
    await asyncio.sleep(max(0.7, min(monotonic() - started, 5.0)))
    site.leaves[0].power_off()
    answer = await running
    assert answer.outcome in (Outcome.DIED, Outcome.COMMAND_TIMED_OUT)
    assert (answer.stdout, answer.exit_status) == (b"begun\n", None)


async def test_a_gateway_that_dies_makes_all_behind_it_unreachable(
    transport: Transport, site: GatewaySite
) -> None:
    """Those that had answered stay answered; the others name the gateway, later ones at once."""
    first = await transport.run(site.leaves[0].node, STATUS)
    assert first.exit_status == 3
    command = Command(("sh", "-c", "sleep 300; echo late"), deadline_s=600)
    running = [asyncio.create_task(transport.run(m.node, command)) for m in site.leaves]
    await _sleeps(*site.leaves)
    site.gateway.power_off()
    answers = await asyncio.wait_for(asyncio.gather(*running), TIMEOUT_S)
    later = await transport.run(site.leaves[1].node, STATUS)
    for answer in (*answers, later):
        assert answer.outcome is Outcome.UNREACHABLE, answer
        assert answer.detail.startswith("gateway gw: ")
    assert later.detail == answers[1].detail  # as it was found then


async def test_closing_ends_what_the_gateway_runs(transport: Transport, site: GatewaySite) -> None:
    """Ctrl-C on the controller leaves no ssh behind on the gateway."""
    command = Command(("sleep", "300"), deadline_s=400)
    running = asyncio.create_task(transport.run(site.leaves[0].node, command))
    await _sleeps(site.leaves[0])
    assert _programs(site.gateway, "ssh")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await transport.close()
    await _until(
        lambda: not _programs(site.gateway, "ssh") and not _programs(site.gateway, "python3"),
        "ssh or the program still runs on the gateway",
    )


async def _sleeps(*machines: Machine) -> None:
    """Until every one of these machines runs the command it was asked for."""
    await _until(
        lambda: all(_programs(machine, "sleep") for machine in machines), "it did not begin"
    )


async def _until(happened: Callable[[], bool], otherwise: str) -> None:
    limit_s = monotonic() + TIMEOUT_S
    while not happened():
        assert monotonic() < limit_s, otherwise
        await asyncio.sleep(0.05)


def _programs(machine: Machine, name: str) -> list[str]:
    """Processes of one name below a machine's first one."""
    shown = subprocess.run(
        ["ps", "-e", "-o", "pid=,pidns=,comm="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [line.split() for line in shown]
    below = descendants(machine.pid)
    space = {row[1] for row in rows if int(row[0]) in below}
    return [row[0] for row in rows if row[1] in space and row[2] == name]


async def test_a_sweep_s_payload_travels_to_the_gateway_once(
    transport: Transport, site: GatewaySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three nodes, one copy of the probes on the wire to the gateway; every node reports."""
    sent: list[int] = []
    write = GatewayRelay._write

    def counting(relay: GatewayRelay, order: dict[str, object], payload: bytes) -> None:
        sent.append(len(payload))
        write(relay, order, payload)

    monkeypatch.setattr(GatewayRelay, "_write", counting)
    nodes = [dataclasses.replace(leaf.node, python="/usr/bin/python3") for leaf in site.leaves]
    reports = [r async for r in sweep(transport, nodes, {"c": check("c")}, limit=8)]
    assert {(r.node, r.outcome) for r in reports} == {(n.name, Outcome.ANSWERED) for n in nodes}
    assert sum(size > 1000 for size in sent) == 1
    assert sum(sent) < 2 * max(sent)


async def test_a_gateway_that_is_not_there_fails_its_nodes_quickly(site: GatewaySite) -> None:
    """One deadline for all of them, not one for each."""
    nodes = {**site.nodes, "gw": dataclasses.replace(site.gateway.node, port=2)}
    transport = open_transport(site.ssh, nodes)
    many = [Node(f"n{i}", f"10.233.0.{i}", via="gw") for i in range(50)]
    answers = [a async for a in gather(transport, many, lambda _: STATUS, limit=4)]
    await transport.close()
    assert {a.outcome for a in answers} == {Outcome.UNREACHABLE}
    assert all("gateway gw" in a.detail and ":2" in a.detail for a in answers)


async def test_held_connections_go_on_beside_a_leaf_that_loses_power(
    transport: Transport, site: GatewaySite
) -> None:
    """And nothing of them stays on the leaves when the gateway loses its power."""
    heard = {leaf.node.name: asyncio.Event() for leaf in site.leaves}

    async def words() -> AsyncIterator[bytes]:
        while True:
            yield b"word\n"
            await asyncio.sleep(0.1)

    def hold(leaf: Machine) -> "asyncio.Task[CommandResult]":
        streams = Streams(words, lambda *_: heard[leaf.node.name].set(), held=True)
        command = Command(("cat",), deadline_s=TIMEOUT_S)
        return asyncio.ensure_future(run_streamed(transport, leaf.node, command, streams))

    running = {leaf.node.name: hold(leaf) for leaf in site.leaves}
    await _until(lambda: all(event.is_set() for event in heard.values()), "not all talk")
    site.leaves[0].power_off()
    for event in heard.values():
        event.clear()
    others = site.leaves[1:]
    await _until(lambda: all(heard[leaf.node.name].is_set() for leaf in others), "others wait")
    site.gateway.power_off()
    answers = await asyncio.wait_for(asyncio.gather(*running.values()), TIMEOUT_S)
    assert {answer.outcome for answer in answers[1:]} == {Outcome.UNREACHABLE}
    await _until(lambda: not any(_programs(leaf, "cat") for leaf in others), "cat still runs")
