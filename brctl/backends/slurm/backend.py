"""Slurm: drain and resume, jobs through sbatch on the node list brctl wants.

Which node carries which rank, and which standby is put aside, Slurm has no place for; that stays in
brctl's own state file. What a rank does is asked of the nodes, as without a scheduler. A restart is
a new submission and never `scontrol requeue`: a requeued job waits about two minutes by itself.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from brctl.backends.contract import (
    Cordon,
    Label,
    StartReport,
    StopReport,
    labelled,
    unlabelled,
)
from brctl.backends.ranks.commands import program, start_request
from brctl.backends.slurm import commands as slurm
from brctl.backends.static.backend import StaticBackend
from brctl.backends.static.state import change_state, read_state
from brctl.fanout.contract import Transport
from brctl.fanout.local import LocalTransport
from brctl.model.command import Command, Outcome
from brctl.model.errors import DeniedError, UnavailableError
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState

HERE = Node("localhost", "127.0.0.1")
COMMAND_DEADLINE_S = 30.0
POLL_S = 0.25


class SlurmBackend(StaticBackend):
    """See the head of this file, and `Backend`."""

    name = "slurm"

    def __init__(
        self, state_file: Path, transport: Transport, inventory: Inventory, fanout: int
    ) -> None:
        super().__init__(state_file, transport, inventory, fanout)
        self._here = LocalTransport()
        self.start_deadline_s = 60.0

    async def cordons(self) -> Mapping[str, Cordon]:
        """See `Backend.cordons`: whatever is drained or down, whoever did it."""
        return slurm.parse_cordons(await self._run(slurm.NODES))

    async def cordon(self, nodes: Sequence[str], owner: str, reason: str, at: datetime) -> None:
        """See `Backend.cordon`; Slurm keeps its own time."""
        self._inventory.require(nodes)
        before = await self.cordons()
        fresh = [node for node in nodes if node not in before or not before[node].lasting]
        if fresh:
            await self._run(slurm.drain(fresh, owner, reason))

    async def uncordon(self, nodes: Sequence[str]) -> None:
        """See `Backend.uncordon`."""
        before = await self.cordons()
        drained = [node for node in nodes if node in before]
        if drained:
            await self._run(slurm.resume(drained))

    async def idle_nodes(self, job: Job | None = None) -> tuple[str, ...]:
        """See `Backend.idle_nodes`: what Slurm calls idle and the inventory knows."""
        idle = slurm.parse_idle(await self._run(slurm.NODES))
        return tuple(name for name in idle if name in self._inventory.nodes)

    async def reserve(self, node: str, owner: str, at: datetime) -> bool:
        """See `Backend.reserve`; refused where no job could ever take the standby in."""
        partitions = slurm.parse_partitions(await self._run(slurm.PARTITIONS))
        active = self._inventory.names(NodeRole.ACTIVE)
        taking = {name for other in active for name in partitions.get(other, ())}
        if not taking & partitions.get(node, set()):
            raise UnavailableError(
                f"standby {node} shares no Slurm partition with any active node",
                hint="a job never spans two partitions: put standbys into the job's own partition,"
                f" drained with the reason `{slurm.STANDBY_REASON}`",
            )
        return await super().reserve(node, owner, at)

    async def labels(self, nodes: Sequence[str], key: str) -> Mapping[str, Label]:
        """See `Backend.labels`: kept in the nodes' comments, for `scontrol show node`."""
        comments = slurm.parse_comments(await self._run(slurm.COMMENTS))
        found = {node: slurm.label_in(comments.get(node, ""), key) for node in nodes}
        return {node: label for node, label in found.items() if label is not None}

    async def label(self, nodes: Sequence[str], key: str, value: str, owner: str) -> None:
        """See `Backend.label`."""
        self._inventory.require(nodes)
        await self._relabel(nodes, key, lambda before: labelled(before, value, owner))

    async def unlabel(self, nodes: Sequence[str], key: str, owner: str) -> None:
        """See `Backend.unlabel`."""
        await self._relabel(nodes, key, lambda before: unlabelled(before, owner))

    async def _relabel(
        self, nodes: Sequence[str], key: str, change: Callable[[Label | None], Label | None]
    ) -> None:
        comments = slurm.parse_comments(await self._run(slurm.COMMENTS))
        for node in nodes:
            before = comments.get(node, "")
            after = slurm.with_label(before, key, change(slurm.label_in(before, key)))
            if after != before:
                await self._run(slurm.set_comment(node, after))

    async def work_on(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """See `Backend.work_on`; a drained node takes no job, those it has end by themselves."""
        left: dict[str, str] = {}
        for node in nodes:
            there = slurm.parse_jobs_on(await self._run(slurm.jobs_on(node)))
            if there:
                left[node] = ", ".join(there)
        return left

    async def start_job(self, job: Job, checkpoint: str, incarnation: str) -> StartReport:
        """See `Backend.start_job`: submit, then wait until every rank has a process."""
        queued = await self._queued(job)
        other_starts = [j for j in queued if j.incarnation != incarnation]
        if other_starts:
            why = f"job {other_starts[0].id} of an earlier start is {other_starts[0].state}"
            return StartReport((), dict.fromkeys(job.nodes, why))
        if not queued:
            await self._wake_standbys(job)
            await self._submit(job, checkpoint, incarnation)
        return await self._started(job)

    async def stop_job(self, job: Job, grace_s: float) -> StopReport:
        """See `Backend.stop_job`: SIGTERM to the ranks, the grace, then SIGKILL."""
        for entry in await self._queued(job):
            command = slurm.signal_ranks(entry.id, "TERM")
            await self._run(command if entry.state == "RUNNING" else slurm.cancel(entry.id))
        state = await self._ended(job, grace_s)
        late = state.alive
        for entry in await self._queued(job):
            await self._run(slurm.signal_ranks(entry.id, "KILL"))
            await self._run(slurm.cancel(entry.id))
        if late:
            state = await self._ended(job, COMMAND_DEADLINE_S)
        return StopReport(
            stopped=tuple(rank for rank in state.gone if rank not in late),
            killed=tuple(rank for rank in late if rank not in state.alive),
            stuck=state.alive,
            unreachable=state.unreachable,
        )

    async def job_status(self, job: Job) -> JobRunState:
        """See `Backend.job_status`: with a dead node Slurm keeps a job whose ranks are gone."""
        state = await super().job_status(job)
        queued = await self._queued(job)
        held = ", ".join(f"Slurm job {entry.id} {entry.state}" for entry in queued)
        return replace(state, held=held)

    async def _ended(self, job: Job, seconds: float) -> JobRunState:
        """What runs once every rank has ended or the time is up.

        A dead node makes every look as long as its connect timeout: no look more than needed.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        while (state := await super().job_status(job)).alive:
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(POLL_S)
        return state

    async def _queued(self, job: Job) -> tuple[slurm.QueuedJob, ...]:
        """Our entries: of whoever runs this, and of who submitted it last by this state."""
        recorded = read_state(self._file).submitters.get(job.name, os.getuid())
        command = slurm.queue(_queue_name(job), {recorded, os.getuid()})
        return slurm.parse_queue(await self._run(command))

    async def _wake_standbys(self, job: Job) -> None:
        drained = slurm.parse_standbys(await self._run(slurm.NODES))
        drained_nodes = [node for node in job.nodes if node in drained]
        if drained_nodes:
            await self._run(slurm.resume(drained_nodes))

    async def _submit(self, job: Job, checkpoint: str, incarnation: str) -> None:
        ours = {job.name: os.getuid()}
        change_state(self._file, lambda now: replace(now, submitters={**now.submitters, **ours}))
        command = slurm.submit(job, _queue_name(job), incarnation)
        await self._run(command, stdin=self._batch_program(job, checkpoint, incarnation))

    def _batch_program(self, job: Job, checkpoint: str, incarnation: str) -> bytes:
        """A Python program as batch script: it hands `_ranks/program.py` to every task by srun."""
        first = self._inventory.nodes[job.nodes[0]]
        python = first.python
        requests = {
            node.name: start_request(job, node, first, checkpoint, incarnation)
            for node in self._inventory.pick(job.nodes)
        }
        request = {
            "do": "batch",
            "python": python,
            "program": program(),
            "tasks": job.world_size,
            "ranks_per_node": job.ranks_per_node,
            "requests": requests,
        }
        shebang = (
            f"#!{python} -I\n" if python.startswith("/") else f"#!/usr/bin/env -S {python} -I\n"
        )
        return f"{shebang}{program()}run({json.dumps(request)!r})\n".encode()

    async def _started(self, job: Job) -> StartReport:
        """Every rank, or why not; a submission that does not start in time is withdrawn."""
        deadline = asyncio.get_running_loop().time() + self.start_deadline_s
        while True:
            state = await super().job_status(job)
            if len(state.alive) == job.world_size:
                return StartReport(state.alive, {})
            queued = await self._queued(job)
            if not queued or asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(POLL_S)
        for entry in queued:
            await self._run(slurm.cancel(entry.id))
        why = f"still {queued[0].state} ({queued[0].reason})" if queued else "it ended at once"
        missing = [n for n in job.nodes if not set(job.ranks_on(n)) <= set(state.alive)]
        return StartReport(state.alive, dict.fromkeys(missing, f"slurm: {why}"))

    async def _run(self, argv: Sequence[str], stdin: bytes = b"") -> str:
        """Run one of Slurm's commands here.

        Raises:
            UnavailableError: It is not installed, or the controller does not answer.
            DeniedError: Slurm said no.
        """
        command = Command(tuple(argv), stdin=stdin, deadline_s=COMMAND_DEADLINE_S)
        answer = await self._here.run(HERE, command)
        if answer.outcome is not Outcome.ANSWERED or answer.exit_status == 127:
            raise UnavailableError(f"{argv[0]}: {answer.detail or 'cannot be run'}")
        if answer.exit_status != 0:
            message = answer.stderr.decode("utf-8", "replace").strip()[-300:]
            kind = DeniedError if "ermission denied" in message else UnavailableError
            raise kind(f"{argv[0]} said: {message or f'exit {answer.exit_status}'}")
        return answer.stdout.decode("utf-8", "replace")


def _queue_name(job: Job) -> str:
    return f"brctl-{job.name}"
