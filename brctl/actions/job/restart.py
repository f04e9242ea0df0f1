"""job.restart: start every rank from a checkpoint, marked with this run's name."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    FailureKind,
    NothingDone,
    Observation,
    ReadOnly,
    Site,
)
from brctl.actions.job.code_copies import must_agree
from brctl.backends.contract import JobRunState, StartReport
from brctl.model.jobs.code import CodeStart
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

CLEAN_UP_GRACE_S = 5.0
KEEP = "keep"
"""Value of `running`: a job that runs whole is what was asked for, whoever started it."""


class JobRestart(ReadOnly):
    """See the head of this file. There is no undo: stopping is a step of its own."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        job = await site.job(arguments.text(args, "job"))
        state = await site.backend.job_status(job)
        asked = arguments.text(args, "checkpoint", "")
        out: Arguments = {"ranks": len(state.alive), "checkpoint": asked}
        if state.unreachable:
            return Observation(None, say=f"{fold(state.unreachable)} does not answer")
        whole = any(_is_whole(job, state, mark) for mark in _accepted(site, state, args))
        return Observation(whole, out, f"{len(state.alive)} ranks alive")

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        if args.get("running") == KEEP and (await self.observe(site, args)).done:
            return ()
        checkpoint = arguments.text(args, "checkpoint", "") or "the job's own choice"
        job = arguments.text(args, "job")
        return (Change(Sign.ADD, f"job {job}", f"restarted from {checkpoint}"),)

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        job = await site.job(arguments.text(args, "job"))
        checkpoint = arguments.text(args, "checkpoint", "")
        await self._clear(site, job)
        await self._note_code(site, job, checkpoint)
        report = await site.backend.start_job(job, checkpoint, site.run)
        if report.failed:
            failed = "; ".join(f"{node}: {why}" for node, why in sorted(report.failed.items()))
            raise ActionFailed(f"not every rank was started: {failed}", FailureKind.SCHEDULER)
        say = f"{len(report.started)} ranks started from {checkpoint or 'their own choice'}"
        return ActionResult(
            {"ranks": len(report.started), "checkpoint": checkpoint}, say=say + _how(report)
        )

    async def _note_code(self, site: Site, job: Job, checkpoint: str) -> None:
        """Write down what is started from where, before it is; every node must have that code."""
        code = job.code
        if code is None:
            return
        digest = await must_agree(site, job, code, job.nodes)
        start = CodeStart(site.run, code.version, code.change, digest, checkpoint, site.now())
        site.code_ledger(job.name).started(start)

    async def _clear(self, site: Site, job: Job) -> None:
        """Half a start cannot be completed: its ranks wait for partners that will never come."""
        state = await site.backend.job_status(job)
        strangers = state.incarnations - {site.run}
        if strangers:
            raise NothingDone(f"job {job.name} runs already, started by {sorted(strangers)[0]}")
        if state.alive:
            await site.backend.stop_job(job, CLEAN_UP_GRACE_S)

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        return await self.observe(site, args)


def _accepted(site: Site, state: JobRunState, args: Arguments) -> frozenset[str]:
    return state.incarnations if args.get("running") == KEEP else frozenset({site.run})


def _how(report: StartReport) -> str:
    """Which ranks started warm, and why others did not although something was parked for them."""
    warm = f", {len(report.warm)} of them in parked processes" if report.warm else ""
    reasons: dict[str, list[str]] = {}
    for node, why in report.cold.items():
        reasons.setdefault(why, []).append(node)
    return warm + "".join(f"; {fold(nodes)} cold: {why}" for why, nodes in reasons.items())


def _is_whole(job: Job, state: JobRunState, run: str) -> bool:
    return len(state.alive) == job.world_size and state.incarnations == {run}
