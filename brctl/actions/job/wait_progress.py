"""job.wait_progress: wait until training really takes new steps."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, ReadOnly
from brctl.model.jobs.job_status import JobStatus
from brctl.model.runs.playbook import Arguments

POLL_S = 1.0


class JobWaitProgress(ReadOnly):
    """Done when the newest step is `steps` beyond the first one seen and beyond `beyond`.

    A job that is loading still shows step 0; without `beyond`, the step of the checkpoint it
    starts from, its first step would look like progress.
    """

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        wanted = arguments.count(args, "steps", 1)
        beyond = arguments.count(args, "beyond", 0)
        within_s = arguments.seconds(args, "within", "10m")
        job = await context.jobs.get(arguments.text(args, "job"))
        started, first, last = context.clock.now(), None, None
        while (context.clock.now() - started).total_seconds() < within_s:
            status = await context.jobs.progress(job)
            _refuse_ended(status)
            last = status.step if status.step is not None else last
            first = last if first is None else first
            if last is not None and first is not None and last >= max(first, beyond) + wanted:
                since = max(first, beyond)
                return ActionResult({"first_step": since, "step": last}, changed=False,
                            say=f"step {since} to {last}")  # fmt: skip
            await context.clock.pause(POLL_S)
        progress = f"step {last}" if last is not None else "no step at all"
        raise ActionFailed(f"{progress} after {within_s:g} s", FailureKind.TIMEOUT)


def _refuse_ended(status: JobStatus) -> None:
    for view in status.ranks:
        if view.alive is False and view.exit_status not in (None, 0):
            raise ActionFailed(f"rank {view.rank} on {view.node} ended with {view.exit_status}")
