"""Which checkpoints of a job can be restarted from, read from a node that answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from brctl.actions.context import RunContext
from brctl.actions.job.ckpt_select import checkpoints_in, first_answer
from brctl.evidence.operators import is_number
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import Value


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint as a node sees it; None where it was not measured."""

    step: int
    path: str
    complete: bool | None
    problem: str
    age_s: float | None
    size_bytes: int | None
    verified: bool


async def look_at_checkpoints(
    context: RunContext, job: Job, *, verify: bool, without: Sequence[str] = ()
) -> tuple[str, tuple[Checkpoint, ...]]:
    """The node that answered, and what it sees, newest first.

    Raises:
        ActionFailed: No node can read the directory.
    """
    report = await first_answer(context, job, without, {"verify": verify})
    found = tuple(_checkpoint(job, row, verify=verify) for row in checkpoints_in(report))
    return report.node, found


def _checkpoint(job: Job, row: dict[str, Value], *, verify: bool) -> Checkpoint:
    complete, age, size = row.get("complete"), row.get("age_s"), row.get("bytes")
    return Checkpoint(
        step=int(row["step"]),
        path=str(job.checkpoint_dir / str(row["name"])),
        complete=complete if isinstance(complete, bool) else None,
        problem=str(row.get("problem", "")),
        age_s=float(age) if is_number(age) else None,
        size_bytes=size if type(size) is int else None,
        verified=verify and "bad_items" in row,
    )
