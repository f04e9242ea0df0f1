"""Record a change of a job's code: look at the copies on the nodes first, then write it down."""

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from brctl.actions.context import RunContext
from brctl.actions.job.code_copies import CodeCopies, copies_of
from brctl.library.jobs import RELEASE
from brctl.model.errors import GuardError, UsageError
from brctl.model.jobs.code import CodeChange, JobCode
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """What a person wants a job to run.

    Attributes:
        code: A release: a directory of the job's releases, by name or absolute path.
    """

    code: str
    why: str
    by: str
    urgent: bool


async def record_change(
    context: RunContext, job: Job, request: CodeRequest
) -> tuple[CodeChange, str]:
    """The recorded change, and a note about nodes that did not answer.

    Raises:
        UsageError: The job has no `code`, or this is no release of it.
        GuardError: The nodes have no copies or different ones; nothing is recorded.
    """
    code = code_of(job)
    release = replace(code, version=release_of(code, request.code), digest="")
    copies = await copies_of(context.sweeps, job, release, job.nodes)
    problem = _refusal(copies)
    if problem:
        raise GuardError(
            f"refused: {problem}. Nothing was recorded.",
            hint=f"put the release on every node, at {release.directory}",
        )
    change = context.jobs.code_ledger(job.name).record(
        release.version, copies.usual(), urgent=request.urgent, why=request.why, by=request.by,
        at=context.clock.now(),
    )  # fmt: skip
    silent = fold(sorted(copies.lost))
    return change, f"{silent} did not answer; its copy is looked at before the start" * bool(silent)


def code_of(job: Job) -> JobCode:
    """The code part of a job.

    Raises:
        UsageError: job.yaml has none.
    """
    if job.code is None:
        raise UsageError(
            f"job {job.name!r} does not say where its code lies",
            hint="job.yaml: code: {releases: /shared/code, start: r41}",
        )
    return job.code


def release_of(code: JobCode, text: str) -> str:
    """The name of a release given by name or by path.

    Raises:
        UsageError: It is no directory of the job's releases.
    """
    path = PurePosixPath(text)
    name = path.name if path.is_absolute() and path.parent == code.releases else text
    if not RELEASE.fullmatch(name):
        raise UsageError(
            f"--code {text}: not a release of this job",
            hint=f"name a directory of {code.releases}",
        )
    return name


def _refusal(copies: CodeCopies) -> str:
    """Nodes that do not answer may come later; a copy that is wrong now is wrong."""
    answered = {node: why for node, why in copies.silent.items() if node not in copies.lost}
    if not copies.digests and not answered:
        return f"no node of the job answers: {next(iter(copies.silent.values()), '')}"
    return replace(copies, silent=answered).problem("")
