"""Slurm's srun as transport, for sites where SSH to a node is not allowed.

A node that carries a running job of ours gets an overlapping step in that job; an idle one a short
allocation of the whole node, because anything less shows the command a part of the node's GPUs,
cores and memory. A look that is held for days is a step or nothing: an allocation would keep the
node from the queue. Nodes that are drained, or busy with other people's jobs, cannot be asked: that
is said, and says nothing of their health. One srun for each node: in a step over many nodes, one
dead node ends the commands of all the others.
"""

import asyncio
import logging
import math
import os
import secrets
import time

from brctl.fanout.client_process import ClientProcess, Endings
from brctl.fanout.contract import Streams
from brctl.fanout.local import LocalTransport
from brctl.fanout.srun.messages import ended_by_itself, meaning, split_stderr
from brctl.fanout.srun.nodes import JOBS, NODES, SrunRoute, parse_jobs, routes
from brctl.fanout.streaming import beside
from brctl.library.config import SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node

QUERY_AGE_S = 2.0
"""One look at Slurm serves all nodes that are asked within this time."""

QUERY_DEADLINE_S = 15.0
QUERY_LIMIT_BYTES = 32 << 20
_LOG = logging.getLogger(__name__)
_LOCALHOST = Node("localhost", "127.0.0.1")
_KEPT_VARIABLES = "PATH,HOME,USER,LANG"
"""What of our environment reaches a node; srun would send all of it, secrets included."""

_MARK_AND_RUN = 'echo "$0" >&2; exec "$@"'
_UNKNOWN_NODE = SrunRoute(outcome=Outcome.UNREACHABLE, why="Slurm knows no node of this name")
_NO_STEP = SrunRoute(
    outcome=Outcome.NOT_AVAILABLE,
    why="no job of ours runs there, and a held connection must not keep it from the queue",
)


class SrunTransport:
    """Runs commands through srun; arguments only, no shell of ours ever sees them."""

    def __init__(self, ssh: SshSettings) -> None:
        self._start_s = ssh.connect_timeout_s + ssh.login_timeout_s
        self._immediate_s = max(1, math.ceil(ssh.connect_timeout_s))
        # In a job of its own, brctl must not take that job's variables for srun's options.
        environ = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
        conf = os.environ.get("SLURM_CONF")
        self._environ = environ | ({"SLURM_CONF": conf} if conf else {})
        self._processes = LocalTransport()
        self._query_lock = asyncio.Lock()
        self._cached: tuple[float, dict[str, SrunRoute] | str] | None = None
        self._endings = Endings()

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        return await self._ask(node, command, None)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Stdout as it comes, stderr at the end: srun mixes its own words into it."""
        return await self._ask(node, command, streams)

    async def _ask(self, node: Node, command: Command, streams: Streams | None) -> CommandResult:
        started = time.perf_counter()
        route = await self._route(node)
        if streams is not None and streams.held and route.outcome is None and not route.job:
            route = _NO_STEP
        if route.outcome is not None:
            seconds = time.perf_counter() - started
            return CommandResult(
                node.name, route.outcome, None, b"", b"", seconds, f"{node.name}: {route.why}"
            )
        mark = f"brctl-{secrets.token_hex(8)}"
        process = ClientProcess(mark.encode(), command.output_limit_bytes, streams)
        try:
            following = self._follow(process, node, route, command, mark, streams)
            outcome, status, detail = await following
        finally:
            # Ending a step takes Slurm seconds, which the answer does not wait for.
            self._endings.later(self._end(process, node, "" if route.job else mark))
        stderr, _ = split_stderr(bytes(process.output[2]), mark.encode())
        stderr = process.told(stderr)
        return CommandResult(
            node.name, outcome, status, bytes(process.output[1]), stderr,
            time.perf_counter() - started, detail,
        )  # fmt: skip

    async def close(self) -> None:
        """Wait until Slurm has back whatever our commands held."""
        await self._endings.wait()
        await self._processes.close()

    async def _end(self, process: ClientProcess, node: Node, allocation: str) -> None:
        """End srun, and the allocation of this name: told to end in a bad moment, srun leaves it.

        It would keep the node from the queue until its time limit. One that ended by itself has
        none, and a controller that is refused many has no scancel for each to wait for.
        """
        cut_short = process.cut_short
        await process.end()
        if not (allocation and cut_short):
            return
        cancel = Command(("scancel", f"--name={allocation}"), deadline_s=QUERY_DEADLINE_S)
        done = await self._processes.run(_LOCALHOST, cancel)
        if done.outcome is not Outcome.ANSWERED or done.exit_status != 0:
            said = done.detail or done.stderr.decode("utf-8", "replace").strip()[-200:]
            _LOG.warning(
                "warning: the allocation %s of %s may stay until its time limit: scancel: %s",
                allocation, node.name, said or f"exit {done.exit_status}",
            )  # fmt: skip

    async def _follow(
        self,
        process: ClientProcess,
        node: Node,
        route: SrunRoute,
        command: Command,
        mark: str,
        streams: Streams | None,
    ) -> tuple[Outcome, int | None, str]:
        argv = (*self._srun(node, route, command.deadline_s, mark),
                "/bin/sh", "-c", _MARK_AND_RUN, mark, *command.argv)  # fmt: skip
        try:
            await process.start(argv, self._environ)
        except OSError as exc:
            return Outcome.NOT_AVAILABLE, None, f"{node.name}: srun cannot be run: {exc.strerror}"
        ending = self._answer(process, node, command, mark)
        if streams is not None:
            return await beside(process.send(streams.stdin()), ending)
        process.send_whole(command.stdin)
        return await ending

    async def _answer(
        self, process: ClientProcess, node: Node, command: Command, mark: str
    ) -> tuple[Outcome, int | None, str]:
        if not await process.begins_within(self._start_s):
            why = f"{node.name}: srun started nothing within {self._start_s:g} s"
            return Outcome.CONNECT_TIMED_OUT, None, why
        if not await process.ends_within(command.deadline_s):
            return Outcome.COMMAND_TIMED_OUT, None, f"no end within {command.deadline_s:g} s"
        return self._ending(process, node, command, mark)

    def _ending(
        self, process: ClientProcess, node: Node, command: Command, mark: str
    ) -> tuple[Outcome, int | None, str]:
        limit = command.output_limit_bytes
        stderr, srun_text = split_stderr(bytes(process.output[2]), mark.encode())
        if process.over_limit or len(stderr) > limit:
            return Outcome.OUTPUT_OVER_LIMIT, None, f"more than {limit} bytes of output"
        status = process.status or 0
        if process.begun.is_set() and ended_by_itself(status, srun_text):
            return Outcome.ANSWERED, status, ""
        outcome, detail = meaning(srun_text)
        if process.begun.is_set():
            return Outcome.DIED, None, f"{node.name}: gone before the command ended: {detail}"
        return outcome, None, f"{node.name}: {detail}"

    def _srun(self, node: Node, route: SrunRoute, deadline_s: float, name: str) -> tuple[str, ...]:
        """The options of srun, for a step in our own job or for an allocation that soon ends."""
        common = (
            "srun", "--quiet", "--nodes=1", "--ntasks=1", f"--nodelist={node.name}", "--mem=0",
            "--cpu-bind=none", f"--export={_KEPT_VARIABLES}", f"--job-name={name}",
        )  # fmt: skip
        if route.job:
            return (*common, f"--jobid={route.job}", "--overlap")
        minutes = math.ceil((deadline_s + self._start_s) / 60) + 1
        gres = (f"--gres={route.gres}",) if route.gres else ()
        return (
            *common, *gres, f"--partition={route.partition}", "--exclusive", f"--time={minutes}",
            f"--immediate={self._immediate_s}",
        )  # fmt: skip

    async def _route(self, node: Node) -> SrunRoute:
        """The way to a node, from a look at Slurm that is not older than a moment."""
        async with self._query_lock:
            now = asyncio.get_running_loop().time()
            if self._cached is None or now - self._cached[0] > QUERY_AGE_S:
                self._cached = (now, await self._query_slurm())
        found = self._cached[1]
        if isinstance(found, str):
            return SrunRoute(outcome=Outcome.NOT_AVAILABLE, why=found)
        return found.get(node.name, _UNKNOWN_NODE)

    async def _query_slurm(self) -> dict[str, SrunRoute] | str:
        """Every node's way, or why Slurm does not tell."""
        texts = []
        for argv in (NODES, JOBS):
            command = Command(
                argv, deadline_s=QUERY_DEADLINE_S, output_limit_bytes=QUERY_LIMIT_BYTES
            )
            answer = await self._processes.run(_LOCALHOST, command)
            if answer.outcome is not Outcome.ANSWERED or answer.exit_status != 0:
                message = answer.stderr.decode("utf-8", "replace").strip()[-200:]
                return f"{argv[0]} said: {answer.detail or message}"
            texts.append(answer.stdout.decode("utf-8", "replace"))
        return dict(routes(texts[0], parse_jobs(texts[1]), os.getuid()))
