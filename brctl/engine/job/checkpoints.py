"""Which checkpoints of a job can be restarted from, read from a node that answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed
from brctl.actions.job.ckpt_select import PREFIX, checkpoints_in, first_answer
from brctl.actions.job.kept_steps import ask_kept_steps
from brctl.evidence.job.kept_steps import KeptSteps
from brctl.evidence.operators import is_number
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import NodeReport, Value


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint as a node sees it; None where it was not measured.

    Attributes:
        loader: What its data loaders' states say together; "" where it keeps none.
    """

    step: int
    path: str
    complete: bool | None
    problem: str
    age_s: float | None
    size_bytes: int | None
    verified: bool
    loader: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointsSeen:
    """What a node sees of a job's checkpoints, newest first.

    Attributes:
        node: Which node read the directory; "" where none could and the job keeps steps in memory.
        remarks: What is odd in the directory and belongs to none of them, a sentence each.
        kept: What all its nodes keep in memory; None for a job that keeps nothing there.
    """

    node: str
    checkpoints: tuple[Checkpoint, ...]
    remarks: tuple[str, ...]
    kept: KeptSteps | None = None


async def look_at_checkpoints(
    context: RunContext, job: Job, *, verify: bool, without: Sequence[str] = ()
) -> CheckpointsSeen:
    """Ask the first node that can read the directory, and every node what it keeps in memory.

    Raises:
        ActionFailed: No node can read the directory, and nothing is kept in memory.
    """
    kept = None
    if job.slot_directory is not None:
        kept = await ask_kept_steps(context.sweeps, job, verify=verify)
    try:
        report = await first_answer(context, job, without, {"verify": verify})
    except ActionFailed as failed:
        if kept is None or not kept.slots:
            raise
        return CheckpointsSeen("", (), (str(failed),), kept)
    found = tuple(_checkpoint(job, row, verify=verify) for row in checkpoints_in(job, report))
    return CheckpointsSeen(report.node, found, _remarks(report, found), kept)


def _remarks(report: NodeReport, found: Sequence[Checkpoint]) -> tuple[str, ...]:
    """What the probe noted, and where the framework's own pointer leads astray."""
    readings = {m.name: str(m.value) for m in report.measurements if not m.subject}
    remarks = [note for result in report.results for note in result.notes]
    problem, pointer = (readings.get(f"{PREFIX}{n}", "") for n in ("pointer_problem", "pointer"))
    broken = {PurePosixPath(c.path).name: c for c in found if c.complete is False}
    if problem:
        remarks.append(f"{problem}: the framework itself would find none")
    elif pointer in broken:
        remarks.append(f"the framework itself would load {pointer}: {broken[pointer].problem}")
    return tuple(remarks)


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
        loader=str(row.get("loader", "")),
    )
