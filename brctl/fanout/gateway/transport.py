"""Nodes behind a gateway are asked by the gateway (`ssh: {gateways: tree}`).

The gateway logs in to its nodes with its own OpenSSH client, keys and known_hosts. What it says of
a node is believed as far as the gateway is; see decision 0045.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping

from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.contract import Streams
from brctl.fanout.gateway.frames import Frame
from brctl.fanout.gateway.relay import GatewayRelay, RelayLostError
from brctl.fanout.openssh_transport import login_outcome
from brctl.fanout.streaming import run_whole
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node

AGAIN_S = 30.0
"""A gateway that was found dead is not tried anew for so long: its nodes need not wait each."""

LIMIT_BYTES = 64 << 20
"""Most output of one stream that any command may ask for through a gateway."""

GRACE_S = 15.0
"""A gateway's own deadlines are ours; one that beats and never answers is not waited for."""


def open_asyncssh(
    ssh: SshSettings, nodes: Mapping[str, Node], keep: int
) -> "AsyncsshTransport | TreeTransport":
    """To all nodes directly, or by gateways for those behind them, as the settings say."""
    direct = AsyncsshTransport(ssh, nodes, keep=keep)
    return TreeTransport(ssh, direct) if ssh.gateways == "tree" else direct


class TreeTransport:
    """Direct to nodes without `via`, through the gateway's own ssh to the others."""

    def __init__(self, ssh: SshSettings, direct: AsyncsshTransport) -> None:
        self._ssh = ssh
        self._direct = direct
        self._relays: dict[str, GatewayRelay] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._dead: dict[str, tuple[float, str]] = {}

    def know(self, nodes: Iterable[Node]) -> None:
        """Nodes that others are reached through, by the inventory of whoever asks."""
        self._direct.know(nodes)

    def was_silent(self, node: str, since: float) -> None:
        """See `Remembering`; who is behind a gateway is the gateway's to wait for."""
        self._direct.was_silent(node, since)

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        if not node.via:
            return await self._direct.run(node, command)
        return await self._behind_gateway(node, command)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """A gateway passes on what is held; else it takes all input, once for all its nodes."""
        if not node.via:
            return await self._direct.stream(node, command, streams)
        if streams.held and streams.on_output is not None:
            return await self._behind_gateway(node, command, streams)
        return await run_whole(self, node, command, streams)

    async def _behind_gateway(
        self, node: Node, command: Command, streams: Streams | None = None
    ) -> CommandResult:
        started = time.perf_counter()
        login_s = self._ssh.connect_timeout_s + self._ssh.login_timeout_s
        limit_s = login_s + command.deadline_s + GRACE_S
        try:
            relay = await self._relay(node.via)
            async with asyncio.timeout(limit_s):
                argv = _ssh_argv(self._ssh, node)
                if streams is None:
                    found = await relay.ask(argv, command, login_s)
                else:
                    found = await relay.hold(argv, command, login_s, streams)
        except (RelayLostError, TimeoutError) as lost:
            why = lost if isinstance(lost, RelayLostError) else f"no answer within {limit_s:g} s"
            detail = f"gateway {node.via}: {why}"
            seconds = time.perf_counter() - started
            return CommandResult(node.name, Outcome.UNREACHABLE, None, b"", b"", seconds, detail)
        frame, stdout, stderr = _bounded(*found, command.output_limit_bytes)
        outcome, detail = _outcome(frame, stderr, command, login_s)
        if streams is not None and streams.on_output is not None:
            streams.on_output(stderr, True)
            stderr = b""
        ended = outcome is Outcome.ANSWERED
        return CommandResult(
            node=node.name,
            outcome=outcome,
            exit_status=frame.status if ended else None,
            stdout=stdout,
            stderr=stderr if frame.begun else b"",
            seconds=time.perf_counter() - started,
            detail=detail and f"{node.address}:{node.port} from gateway {node.via}: {detail}",
        )

    async def close(self) -> None:
        """End the gateways' programs and the connections."""
        for relay in self._relays.values():
            relay.close()
        await self._direct.close()

    async def _relay(self, name: str) -> GatewayRelay:
        """The gateway's program, started when it does not run; one that died stays dead a while."""
        async with self._opening.setdefault(name, asyncio.Lock()):
            relay = self._relays.get(name)
            if relay is not None and not relay.lost:
                return relay
            if relay is not None:
                self._dead[name] = (time.monotonic(), relay.lost)
                del self._relays[name]
            died_at, why = self._dead.get(name, (float("-inf"), ""))
            if time.monotonic() - died_at < AGAIN_S:
                raise RelayLostError(why)
            relay = GatewayRelay(self._direct.gateway(name), LIMIT_BYTES)
            try:
                await relay.open(self._direct, self._ssh.fanout)
            except RelayLostError as lost:
                self._dead[name] = (time.monotonic(), str(lost))
                raise
            self._relays[name] = relay
            return relay


def _ssh_argv(ssh: SshSettings, node: Node) -> tuple[str, ...]:
    """The gateway's ssh to a node: nothing forwarded, no key taken on trust, nothing asked."""
    user = node.user or ssh.user
    return (
        "ssh", "-a", "-x", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
        "-o", "ClearAllForwardings=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none",
        "-o", f"ConnectTimeout={max(1, round(ssh.connect_timeout_s))}",
        "-o", "ServerAliveInterval=5", "-p", str(node.port),
        *(("-l", user) if user else ()), "--", node.address,
    )  # fmt: skip


def _bounded(frame: Frame, stdout: bytes, stderr: bytes, limit: int) -> tuple[Frame, bytes, bytes]:
    """An answer within what its command asked for, whatever the gateway let through."""
    frame.over = frame.over or len(stdout) > limit or len(stderr) > limit
    return frame, stdout[:limit], stderr[:limit]


def _outcome(frame: Frame, stderr: bytes, command: Command, login_s: float) -> tuple[Outcome, str]:
    if not frame.begun:
        if frame.late:
            return Outcome.LOGIN_TIMED_OUT, f"no login within {login_s:g} s"
        return login_outcome(stderr)
    if frame.over:
        return Outcome.OUTPUT_OVER_LIMIT, f"more than {command.output_limit_bytes} bytes of output"
    if frame.late:
        return Outcome.COMMAND_TIMED_OUT, f"no end within {command.deadline_s:g} s"
    if frame.status is None:
        return Outcome.DIED, "gone before the command ended"
    return Outcome.ANSWERED, ""
