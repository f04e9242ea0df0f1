"""Run the SSH servers of a lab without namespaces: one process a node, forked after the import.

Started by `brctl.lab.loopback` as `python -m brctl.lab.node_server LAB_DIR NODE...`; it returns
when all servers listen, and the servers live on. The server is asyncssh's, so
authentication, host keys and channels are real; commands run in a shell in their own session.

SIGUSR1 makes a server refuse new connections, SIGUSR2 makes it listen again; what runs goes on.
"""

import asyncio
import contextlib
import os
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import asyncssh

from brctl.lab.compile import build_libraries
from brctl.lab.environment import login_environment, node_environment
from brctl.lab.processes import record_process
from brctl.lab.record import LabNode, read_record
from brctl.lab.spec import LabPaths
from brctl.library.config import user_cache_dir
from brctl.library.programs.child_start import start_process

READY_DEADLINE_S = 100.0
CHUNK_BYTES = 1 << 16


class NodeServer:
    """The SSH server of one node."""

    def __init__(self, node: LabNode, paths: LabPaths, variables: Mapping[str, str]) -> None:
        self._node = node
        self._paths = paths
        self._home = paths.node(node.name).home
        self._environment = login_environment(variables, self._home)
        self._listener: asyncssh.SSHAcceptor | None = None
        self._changes: set[asyncio.Task[None]] = set()

    async def serve(self, ready: int) -> None:
        """Listen until killed; one byte into `ready` says that it does."""
        await self.listen()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self._refuse)
        loop.add_signal_handler(signal.SIGUSR2, self._listen_again)
        os.write(ready, b"1")
        os.close(ready)
        await asyncio.Event().wait()

    async def listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncssh.listen(
                self._node.address,
                self._node.port,
                server_host_keys=[str(self._paths.node(self._node.name).host_key)],
                authorized_client_keys=str(self._paths.client_key) + ".pub",
                process_factory=self._run,
                encoding=None,
                line_editor=False,
                reuse_address=True,
            )

    def _refuse(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _listen_again(self) -> None:
        task = asyncio.ensure_future(self.listen())
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command
        shell = ["/bin/sh", "-c", command] if command else ["/bin/sh", "-l"]
        child = await start_process(
            asyncio.create_subprocess_exec(
                *shell,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                cwd=self._home,
                env=self._environment,
            )
        )
        feeding = asyncio.ensure_future(_feed(process, child))
        hanging_up = asyncio.ensure_future(_hang_up(process, child))
        await asyncio.gather(
            _forward(child.stdout, process.stdout), _forward(child.stderr, process.stderr)
        )
        status = await child.wait()
        feeding.cancel()
        hanging_up.cancel()
        if status < 0:
            process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            process.exit(status)


async def _feed(
    process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process
) -> None:
    """Copy the client's input to the command until either ends; pass signals on."""
    writer = child.stdin
    assert writer is not None  # noqa: S101  # it was asked for as a pipe
    try:
        while True:
            try:
                data = await process.stdin.read(CHUNK_BYTES)
            except asyncssh.SignalReceived as received:
                _signal_group(child.pid, received.signal)
                continue
            except (asyncssh.BreakReceived, asyncssh.TerminalSizeChanged):
                continue
            if not data:
                break
            writer.write(data)
            await writer.drain()
    except (ConnectionError, asyncssh.Error):
        return
    finally:
        writer.close()


async def _hang_up(
    process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process
) -> None:
    """End a command whose client is gone: asyncssh drops signals that come after its input."""
    await process.wait_closed()
    _signal_group(child.pid, "TERM")


async def _forward(reader: asyncio.StreamReader | None, writer: asyncssh.SSHWriter[bytes]) -> None:
    """Copy output to the client; without a client it is read and dropped, so nothing blocks."""
    assert reader is not None  # noqa: S101  # it was asked for as a pipe
    listening = True
    while data := await reader.read(CHUNK_BYTES):
        if not listening:
            continue
        try:
            writer.write(data)
            await writer.drain()
        except (ConnectionError, asyncssh.Error):
            listening = False


def _signal_group(pid: int, name: str) -> None:
    number = getattr(signal, f"SIG{name}", None)
    if number is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)


def _become_node(node: LabNode, paths: LabPaths, variables: Mapping[str, str], ready: int) -> None:
    """The forked child: a session of its own, its own log, then serve until killed."""
    os.setsid()
    node_paths = paths.node(node.name)
    record_process(node_paths.process, os.getpid())
    log = os.open(node_paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target in (1, 2):
        os.dup2(log, target)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    asyncio.run(NodeServer(node, paths, variables).serve(ready))


def _fork(node: LabNode, paths: LabPaths, variables: Mapping[str, str]) -> int:
    """Start one node and return the pipe that tells when it listens."""
    waiting, ready = os.pipe()
    if os.fork():
        os.close(ready)
        return waiting
    os.close(waiting)
    try:
        _become_node(node, paths, variables, ready)
    finally:
        os._exit(1)


def _await_ready(waiting: Mapping[int, str]) -> list[str]:
    """Names of the nodes that did not come up in time."""
    late = dict(waiting)
    while late:
        readable, _, _ = select.select(list(late), [], [], READY_DEADLINE_S)
        if not readable:
            break
        for pipe in readable:
            if os.read(pipe, 1) != b"1":
                return [late[pipe]]
            del late[pipe]
    return list(late.values())


def main(arguments: list[str]) -> int:
    """Start the servers of the named nodes."""
    paths = LabPaths(Path(arguments[0]))
    record = read_record(paths)
    if record is None:
        sys.stderr.write(f"{paths.record}: no lab here\n")
        return 1
    libraries = build_libraries(user_cache_dir(os.environ))
    waiting = {}
    for name in arguments[1:]:
        variables = node_environment(record, paths, libraries, name)
        waiting[_fork(record.node(name), paths, variables)] = name
    failed = _await_ready(waiting)
    for name in failed:
        log = paths.node(name).log
        sys.stderr.write(f"{name}: {log.read_text()[-2000:] if log.exists() else 'no answer'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
