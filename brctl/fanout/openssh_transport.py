"""The OpenSSH client as transport, for what only it understands of an ssh_config.

Logging in and running are two calls: the first leaves a master connection behind that only this
transport can use, the second runs over it, so each has its own deadline and an exit status of 255
can be told from a broken connection.
"""

import asyncio
import re
import shlex
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from brctl.fanout.contract import Streams
from brctl.fanout.local import LocalTransport
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UnavailableError
from brctl.model.inventory import Node

SSH_FAILED = 255
"""ssh's own failure, and any status 255 of the remote command."""

_CONTROL_S = 5.0
_GOING_S = 0.1
"""A master that lost its node may answer one more check before it ends."""
_TEXT_BYTES = 16_384

# What ssh 7 to 10 say, in the order they are looked for.
LOGIN_MESSAGES: tuple[tuple[str, Outcome], ...] = (
    (r"Host key verification failed|REMOTE HOST IDENTIFICATION|[Rr]evoked host key|"
     r"No .* host key is known|no matching host key type", Outcome.HOST_KEY_MISMATCH),
    (r"Permission denied|Too many authentication failures|No more authentication",
     Outcome.AUTHENTICATION_FAILED),
    (r"timed out during banner exchange|Timeout, server", Outcome.LOGIN_TIMED_OUT),
    (r"Connection timed out|Operation timed out", Outcome.CONNECT_TIMED_OUT),
    (r"Connection refused|Connection reset|Connection closed|closed by remote host|"
     r"kex_exchange_identification|ssh_exchange_identification", Outcome.REFUSED),
)  # fmt: skip


class OpensshTransport:
    """Runs commands through `ssh`; arguments only, no shell of ours ever sees them."""

    def __init__(self, ssh: SshSettings) -> None:
        program = shutil.which("ssh")
        if program is None:
            raise UnavailableError("no `ssh` on this machine", hint="apt install openssh-client")
        self._program = program
        self._ssh = ssh
        self._processes = LocalTransport()
        # mkdtemp gives 0700: whoever reaches a control socket is logged in as us.
        self._runtime = Path(tempfile.mkdtemp(prefix="brctl-ssh-"))
        self._masters: dict[str, Node] = {}
        self._users: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        return await self._ask(node, command, None)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Run a command and pass on what comes and goes; see `Streaming.stream`."""
        return await self._ask(node, command, streams)

    async def _ask(self, node: Node, command: Command, streams: Streams | None) -> CommandResult:
        started = time.perf_counter()
        self._users[node.name] += 1
        try:
            failed = await self._login(node)
            answer = failed or await self._run(node, command, streams)
        finally:
            self._users[node.name] -= 1
        return CommandResult(
            node.name, answer.outcome, answer.exit_status, answer.stdout, answer.stderr,
            time.perf_counter() - started, answer.detail,
        )  # fmt: skip

    async def close(self) -> None:
        """End the master connections and remove their sockets."""
        ends = [self._control(node, "exit") for node in self._masters.values()]
        await asyncio.gather(*ends)
        self._masters.clear()
        await self._processes.close()
        await asyncio.to_thread(shutil.rmtree, self._runtime, ignore_errors=True)

    async def _login(self, node: Node) -> CommandResult | None:
        """Open the master connection; None when it stands, else the answer that says why not."""
        async with self._locks.setdefault(node.name, asyncio.Lock()):
            if node.name in self._masters and await self._control(node, "check"):
                return None
            limit_s = self._ssh.connect_timeout_s + self._ssh.login_timeout_s
            argv = (*self._argv(node), "-o", "ControlMaster=yes", "-o", "ControlPersist=yes",
                    "-f", "-N", "--", node.address)  # fmt: skip
            answer = await self._processes.run(node, Command(argv, b"", limit_s, _TEXT_BYTES))
            if answer.outcome is Outcome.ANSWERED and answer.exit_status == 0:
                self._masters[node.name] = node
                return None
            return _login_failure(node, answer, limit_s)

    async def _run(self, node: Node, command: Command, streams: Streams | None) -> CommandResult:
        argv = (*self._argv(node), "-T", "--", node.address, shlex.join(command.argv))
        running = Command(argv, command.stdin, command.deadline_s, command.output_limit_bytes)
        if streams is None:
            answer = await self._processes.run(node, running)
        else:
            answer = await self._processes.stream(node, running, streams)
        if answer.exit_status == SSH_FAILED and await self._master_is_gone(node):
            self._masters.pop(node.name, None)
            detail = "gone before the command ended: the connection broke"
            return CommandResult(node.name, Outcome.DIED, None, answer.stdout, b"", 0.0, detail)
        # Over a shared one a watcher may hold a look; the client that was ended closed its channel.
        if answer.outcome is not Outcome.ANSWERED and self._users[node.name] == 1:
            await self._control(node, "exit")
            self._masters.pop(node.name, None)
        return answer

    async def _master_is_gone(self, node: Node) -> bool:
        for _ in range(2):
            if not await self._control(node, "check"):
                return True
            await asyncio.sleep(_GOING_S)
        return False

    async def _control(self, node: Node, operation: str) -> bool:
        argv = (*self._argv(node), "-O", operation, "--", node.address)
        answer = await self._processes.run(node, Command(argv, b"", _CONTROL_S, _TEXT_BYTES))
        return answer.exit_status == 0

    def _argv(self, node: Node) -> tuple[str, ...]:
        """What every call for a node has in common."""
        control = ("-o", "BatchMode=yes", "-S", str(self._runtime / "%C"))
        return (self._program, *options_for(self._ssh, node), *control)


def options_for(ssh: SshSettings, node: Node) -> tuple[str, ...]:
    """Options of `ssh` that our settings mean; StrictHostKeyChecking is never touched."""
    argv = ["-F", str(ssh.config_file or "none"), "-o", "ServerAliveInterval=5"]
    # An agent lent to a node is an agent of whoever owns that node, whatever ssh_config says.
    argv += ["-o", "ForwardAgent=no", "-o", "ForwardX11=no"]
    argv += ["-o", f"ConnectTimeout={max(1, round(ssh.connect_timeout_s))}"]
    if ssh.known_hosts:
        argv += ["-o", f"UserKnownHostsFile={ssh.known_hosts}"]
        argv += ["-o", "GlobalKnownHostsFile=none"]
    for path in ssh.identity_files:
        argv += ["-o", "IdentitiesOnly=yes", "-i", str(path)]
    if node.user or ssh.user:
        argv += ["-l", node.user or ssh.user]
    if node.port != 22 or ssh.config_file is None:
        argv += ["-p", str(node.port)]
    if node.via:
        argv += ["-J", node.via]
    return tuple(argv)


def shell_argv(ssh: SshSettings, node: Node) -> tuple[str, ...]:
    """The command line of an interactive `ssh` to a node."""
    return ("ssh", *options_for(ssh, node), "-t", "--", node.address)


def _login_failure(node: Node, answer: CommandResult, limit_s: float) -> CommandResult:
    address = f"{node.address}:{node.port}"
    if answer.outcome is Outcome.COMMAND_TIMED_OUT:
        detail = f"{address}: no login within {limit_s:g} s"
        return CommandResult(node.name, Outcome.LOGIN_TIMED_OUT, None, b"", b"", 0.0, detail)
    outcome, reason = login_outcome(answer.stderr)
    return CommandResult(node.name, outcome, None, b"", b"", 0.0, f"{address}: {reason}")


def login_outcome(stderr: bytes) -> tuple[Outcome, str]:
    """What `ssh` means by what it said when it could not log in."""
    text = stderr.decode("utf-8", "replace")
    found = [outcome for pattern, outcome in LOGIN_MESSAGES if re.search(pattern, text)]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    outcome = found[0] if found else Outcome.UNREACHABLE
    return outcome, lines[-1][:200] if lines else "ssh said nothing"
