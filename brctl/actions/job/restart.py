"""job.restart: start every rank from a checkpoint, marked with this run's name."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    FailureKind,
    NothingDone,
    NotUndoable,
    Observation,
)
from brctl.actions.job.code_copies import must_agree
from brctl.actions.standby.replace import replace_lost_standbys
from brctl.backends.contract import StartReport
from brctl.model.jobs.checkpoint_path import is_checkpoint_of
from brctl.model.jobs.code import CodeStart
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

CLEAN_UP_GRACE_S = 5.0
STANDBYS_TRIED = 3
KEEP = "keep"
"""Value of `running`: a job that runs whole is what was asked for, whoever started it."""


class JobRestart(NotUndoable):
    """See the head of this file. There is no undo: stopping is a step of its own."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        job = await context.jobs.get(arguments.text(args, "job"))
        state = await context.backend.job_status(job)
        requested = arguments.text(args, "checkpoint", "")
        out: Arguments = {"ranks": len(state.alive), "checkpoint": requested}
        if state.unreachable:
            return Observation(None, say=f"{fold(state.unreachable)} does not answer")
        whole = any(_is_whole(job, state, mark) for mark in _accepted(context, state, args))
        return Observation(whole, out, f"{len(state.alive)} ranks alive")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if args.get("running") == KEEP and (await self.observe(context, args)).done:
            return ()
        checkpoint = arguments.text(args, "checkpoint", "") or "the job's own choice"
        job = arguments.text(args, "job")
        await context.backend.must_control(await context.jobs.get(job), "started")
        return (Change(Sign.ADD, f"job {job}", f"restarted from {checkpoint}"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        swapped: list[str] = []
        while True:
            job = await context.jobs.get(arguments.text(args, "job"))
            try:
                done = await self._start(context, job, arguments.text(args, "checkpoint", ""))
            except NothingDone:
                raise
            except ActionFailed as failed:
                if len(swapped) == STANDBYS_TRIED:
                    raise
                swapped.append(await _another_standby(context, job, failed))
            else:
                say = "".join(f"; {text}, for it died" for text in swapped)
                return replace(done, say=done.say + say)

    async def _start(self, context: RunContext, job: Job, checkpoint: str) -> ActionResult:
        _refuse_strange(job, checkpoint)
        # Two looks at the same nodes, neither of which needs the other.
        state, digest = await asyncio.gather(
            context.backend.job_status(job), _digest_of_code(context, job), return_exceptions=True
        )
        if isinstance(state, BaseException):
            raise state
        await self._clear(context, job, state)
        # Only now: copies that differ must not leave half a start running.
        if isinstance(digest, BaseException):
            raise digest
        self._note_code(context, job, checkpoint, digest)
        report = await context.backend.start_job(job, checkpoint, context.run.name)
        if report.failed:
            failed = "; ".join(f"{node}: {why}" for node, why in sorted(report.failed.items()))
            raise ActionFailed(f"not every rank was started: {failed}", FailureKind.SCHEDULER)
        say = f"{len(report.started)} ranks started from {checkpoint or 'their own choice'}"
        return ActionResult(
            {"ranks": len(report.started), "checkpoint": checkpoint}, say=say + _how(report)
        )

    def _note_code(self, context: RunContext, job: Job, checkpoint: str, digest: str) -> None:
        """Write down what is started from where, before it is."""
        code = job.code
        if code is None:
            return
        start = CodeStart(
            context.run.name, code.version, code.change, digest, checkpoint, context.clock.now()
        )
        context.jobs.code_ledger(job.name).started(start)

    async def _clear(self, context: RunContext, job: Job, state: JobRunState) -> None:
        """Half a start cannot be completed: its ranks wait for partners that will never come."""
        other_starts = state.incarnations - {context.run.name}
        if other_starts:
            where = fold({job.node_of(rank) for rank in state.alive})
            by = sorted(other_starts)[0]
            raise NothingDone(f"job {job.name} runs already on {where}, started by {by:.80}")
        if state.alive:
            await context.backend.stop_job(job, CLEAN_UP_GRACE_S)


async def _digest_of_code(context: RunContext, job: Job) -> str:
    """The digest every node must have; "" for a job without releases."""
    if job.code is None:
        return ""
    return await must_agree(context.sweeps, job, job.code, job.nodes)


async def _another_standby(context: RunContext, job: Job, failed: ActionFailed) -> str:
    """The start failed because a standby of this run died meanwhile: another takes its place."""
    try:
        swapped = await replace_lost_standbys(context, job)
    except ActionFailed as short:
        raise ActionFailed(f"{failed}; {short}", failed.kind) from short
    if not swapped:
        raise failed
    return swapped


def _refuse_strange(job: Job, checkpoint: str) -> None:
    """Every rank loads it: whatever named it, a node, a saved plan or a person, it is the job's."""
    if checkpoint and not is_checkpoint_of(job, checkpoint):
        raise NothingDone(
            f"{checkpoint[:200]!r} is no checkpoint of job {job.name}: they are in"
            f" {job.checkpoint_dir} and named as {job.checkpoint_pattern or job.checkpoint_layout}"
        )


def _accepted(context: RunContext, state: JobRunState, args: Arguments) -> frozenset[str]:
    return state.incarnations if args.get("running") == KEEP else frozenset({context.run.name})


def _how(report: StartReport) -> str:
    """Which ranks started warm, and why others did not although something was parked for them."""
    warm = f", {len(report.warm)} of them in parked processes" if report.warm else ""
    reasons: dict[str, list[str]] = {}
    for node, why in report.cold.items():
        reasons.setdefault(why, []).append(node)
    return warm + "".join(f"; {fold(nodes)} cold: {why}" for why, nodes in reasons.items())


def _is_whole(job: Job, state: JobRunState, run: str) -> bool:
    return len(state.alive) == job.world_size and state.incarnations == {run}
