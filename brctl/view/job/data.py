"""What each rank was given and how long it took, as people read it."""

from collections.abc import Mapping

from brctl.evidence.job.data.replays import differing, replay_note
from brctl.evidence.job.data.skew import (
    LEAST_RANKS,
    LEAST_STEPS,
    LoadComparison,
    RankLoad,
    SlowCause,
)
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.replay import Replay
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

ROWS_SHOWN = 32

_SAYS = {
    SlowCause.EVEN: "even: no rank is late for its data, its loader or its machine",
    SlowCause.LOADER_OF_NODE: "a loader of one node is slow: its workers, cache or mount",
    SlowCause.LOADER_OF_SOURCE: "the loaders of one source are slow: the source or its storage",
    SlowCause.LOADERS: "some loaders are slow: what they read from, or their workers",
    SlowCause.ALL_LOADERS: "all loaders are slow: more workers or prefetch, or faster storage",
    SlowCause.IMBALANCE: "balance by length, not by machine",
    SlowCause.HARDWARE: "slow whatever they are given: their machines",
    SlowCause.NOT_TOLD_APART: "imbalance or hardware: not told apart without cost from the job;"
    " exchange the ranks of two nodes: skew follows the data, hardware the node",
}


def job_data_page(status: JobStatus, found: LoadComparison | None) -> Page:
    """The answer of `job data`: exit 0 even, 1 late for a known reason, 3 where nobody knows.

    Other batches after a restart than before are exit 1 as well.
    """
    job = status.job
    body: dict[str, Json] = {
        "job": job.name,
        "steps": found.steps if found else 0,
        "cause": found.cause.value if found else None,
        "culprits": list(found.culprits) if found else [],
        "slowest_to_mean": found.slowest_to_mean if found else None,
        "idle_ratio": found.idle if found else None,
        "follows_cost": found.follows_cost if found else None,
        "ranks": [_document(row) for row in found.ranks] if found else [],
        "replays": [_replay(v.rank, v.replay) for v in status.ranks if v.replay is not None],
    }
    text = "\n".join(filter(None, (_text(job, found), _replays(status))))
    code = ExitCode.WARNING if differing(status) else _exit(found)
    return Page("JobData", body, text, code, (job.name,), table=_table(job, found))


def _replays(status: JobStatus) -> str:
    note = replay_note(status)
    return f"after the newest restart: {note}" if note else ""


def _replay(rank: int, replay: Replay) -> dict[str, Json]:
    return {
        "rank": rank,
        "first_step": replay.first,
        "steps": replay.steps,
        "differs_at_step": replay.differs_at,
        "batches_repeated": replay.off,
        "samples": replay.samples,
    }


def _exit(found: LoadComparison | None) -> ExitCode:
    if found is None or found.cause is SlowCause.NOT_TOLD_APART:
        return ExitCode.UNKNOWN
    return ExitCode.OK if found.cause is SlowCause.EVEN else ExitCode.WARNING


def _document(row: RankLoad) -> dict[str, Json]:
    return {
        "rank": row.rank,
        "load_seconds": row.load_s,
        "compute_seconds": row.compute_s,
        "wait_seconds": row.wait_s,
        "cost_ratio": row.cost,
        "late_ratio": row.late,
        "residual": row.residual,
        "source": row.source or None,
    }


def _table(job: Job, found: LoadComparison | None) -> tuple[dict[str, Json], ...]:
    return tuple({"job": job.name, **_document(row)} for row in (found.ranks if found else ()))


def _text(job: Job, found: LoadComparison | None) -> str:
    if found is None and job.world_size < LEAST_RANKS:
        return f"{job.name}: UNKNOWN: fewer than {LEAST_RANKS} ranks cannot be told apart"
    if found is None:
        return (
            f"{job.name}: UNKNOWN: its ranks have no {LEAST_STEPS} steps in common in their ledgers"
            " (Progress.finish_step writes them; cost= tells data from hardware)"
        )
    causes = _causes(found)
    rows = sorted(found.ranks, key=lambda row: (row.rank not in causes, -row.late))
    shown = [_row(row, causes) for row in rows[:ROWS_SHOWN]]
    left = len(rows) - len(shown)
    more = [f"and {left} ranks that are less often the last"] if left else []
    head = ["RANK", "LOAD s", "COMPUTE s", "COST", "LATE", "RESIDUAL", "SOURCE", ""]
    summary = (
        f"imbalance {found.slowest_to_mean:.2f}x (idle {found.idle:.0%}) over {found.steps} steps:"
        f" {_SAYS[found.cause]}"
    )
    if found.beside is not None:
        summary += f"\nwhat costs less: {_SAYS[found.beside[0]]}"
    return "\n".join([columns([head, *shown]), *more, summary])


def _causes(found: LoadComparison) -> Mapping[int, SlowCause]:
    """What each named rank is late for; the larger cause where there are two."""
    lesser, ranks = found.beside or (found.cause, ())
    return {**dict.fromkeys(ranks, lesser), **dict.fromkeys(found.culprits, found.cause)}


def _row(row: RankLoad, causes: Mapping[int, SlowCause]) -> list[str]:
    return [
        str(row.rank),
        f"{row.load_s:.2f}",
        f"{row.compute_s:.2f}",
        "-" if row.cost is None else f"{row.cost:.2f}x",
        f"{row.late:.0%}",
        "-" if row.residual is None else f"{row.residual:+.1f} z",
        printable(row.source, 24) or "-",
        f"<- {causes[row.rank]}" if row.rank in causes else "",
    ]
